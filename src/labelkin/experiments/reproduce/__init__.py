"""The papers' tables and figures rerun: recipes beside this file, what they need, and published against measured."""
