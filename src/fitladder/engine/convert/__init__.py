"""Model folders: conversion from GGUF, and geometry without weights."""
