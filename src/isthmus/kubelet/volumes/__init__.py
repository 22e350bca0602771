"""Volume kinds: one module each with admission, references and its part of the plan; pure."""
