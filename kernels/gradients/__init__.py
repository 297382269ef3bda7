"""Gradients and hessians of losses of one row and of ranking losses."""
