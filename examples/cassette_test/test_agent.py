"""`pytest` replays the recorded answers, without a model. `pytest --toolwire-record` records them again."""

import agent

from toolwire.testing import CassetteGateway


def test_the_agent_reports_the_weather(toolwire_gateway: CassetteGateway) -> None:
    assert "18 degrees" in agent.answer(toolwire_gateway.base_url, "What is the weather in Paris?")
