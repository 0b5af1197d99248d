"""Semantic analysis of selected samples: parse, choose by visible examples, freeze, grade on hidden ones."""
