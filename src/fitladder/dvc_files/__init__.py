"""dvc.yaml and dvc.lock as data, and DVC's MD5; no call of DVC."""
