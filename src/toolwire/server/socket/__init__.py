"""Responses over WebSocket: the upgrade of GET /v1/responses and the connections that it opens."""
