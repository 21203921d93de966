"""What Streamlit runs, in a folder of its own: beside a folder called ``pages`` it would run pages without the frame."""
