"""What is known of vocabularies and runs, as tables and figures."""
