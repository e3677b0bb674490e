"""A model as an HTTP service: ``crfit serve``, or `create_app` for your own ASGI server (extra ``serve``)."""

from crfit.service.app import create_app
from crfit.service.limits import Limits

__all__ = ["Limits", "create_app"]
