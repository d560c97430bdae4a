#!/bin/sh
# Build the image toolwire:latest, check its size, start it as docs/operating.md says, and make a tool call. More arguments go to `docker build`.
set -eu
cd "$(dirname "$0")/../.."
largest=120000000

docker info > /dev/null 2>&1 || { echo "build-image: found no running Docker engine." >&2; exit 1; }
docker build --file examples/operating/Dockerfile --tag toolwire:latest "$@" .
size=$(docker image inspect --format '{{.Size}}' toolwire:latest)
[ "$size" -lt $largest ] || { echo "build-image: the image has $size bytes, expected less than $largest." >&2; exit 1; }

folder=$(mktemp -d)
printf '[server]\nhost = "0.0.0.0"\nkeys = ["env:TOOLWIRE_KEY"]\n' > "$folder/toolwire.toml"
chmod 755 "$folder"
container=$(docker run --detach --read-only --tmpfs /tmp --cap-drop ALL --publish 127.0.0.1::18741 \
    --env TOOLWIRE_KEY=a-key-for-this-check-alone --volume "$folder:/etc/toolwire:ro" toolwire:latest)
trap 'docker rm --force --volumes "$container" > /dev/null; rm -r "$folder"' EXIT
for _ in $(seq 60); do
    [ "$(docker inspect --format '{{.State.Health.Status}}' "$container")" = healthy ] && break
    sleep 1
done
curl --silent --fail "http://$(docker port "$container" 18741/tcp)/v1/chat/completions" \
    --header 'Content-Type: application/json' --header 'Authorization: Bearer a-key-for-this-check-alone' \
    --data '{"model": "demo/echo-tools", "messages": [{"role": "user", "content": "What is the weather in Paris?"}], "tools": [{"type": "function",
        "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}]}' \
    | grep -q '"finish_reason":"tool_calls"' || { docker logs "$container" >&2; echo "build-image: found no tool call." >&2; exit 1; }
echo "toolwire:latest: $size bytes; healthy on a read-only file system, and made a tool call."
