"""What one walk rests on: its recorder, how it stops, is taken up again and is made twice."""
