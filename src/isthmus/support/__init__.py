"""What every program of Isthmus needs and no outside system is part of."""
