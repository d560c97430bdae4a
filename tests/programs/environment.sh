#!/bin/sh
# A virtual environment with what a file lists: environment.sh PYTHON FOLDER -r FILE [-c FILE]. uv does it in seconds; where it
# cannot, pip does it in minutes.
python=$1 folder=$2
shift 2
mkdir -p "$folder"
room=$(df -Pk "$folder" | awk 'NR == 2 { print $4 }')
if [ "$room" -lt 2000000 ]; then
    echo "$folder has room for $room KB; this may take 2,000,000." >&2
    exit 1
fi
"$python" -m venv --clear "$folder" || exit
"$python" -m uv --quiet --native-tls pip install --python "$folder/bin/python" "$@" 2> /dev/null ||
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
