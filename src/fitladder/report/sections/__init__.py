"""Sections of an experiment's page, one module each where they have rules of their own."""
