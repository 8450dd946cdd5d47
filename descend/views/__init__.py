"""What a family shows of itself in a report: functions of a trained model and its data that return exhibits."""
