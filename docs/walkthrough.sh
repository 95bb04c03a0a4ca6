#!/usr/bin/env bash
# Walks through the API from an exercise to a patient who trains, with curl and jq only. Every line says what it shows.
#
#   BAKEHOUSE_URL=http://127.0.0.1:… MANAGER_TOKEN=… SPECIALIST_TOKEN=… PATIENT_TOKEN=… docs/walkthrough.sh [video.mp4]
#
# The three people belong to one clinic; README.md says how to get their tokens. PATIENT_ID is the `sub` of the patient's
# token. Without a video ffmpeg makes one of two seconds.
set -euo pipefail

: "${BAKEHOUSE_URL:?the address of the edge, such as http://127.0.0.1:8080}"
: "${MANAGER_TOKEN:?}" "${SPECIALIST_TOKEN:?}" "${PATIENT_TOKEN:?}"
patient_id=${PATIENT_ID:-dev-patient}
for program in curl jq; do
  command -v "$program" >/dev/null || { echo "$program is not on PATH, and this needs it" >&2; exit 1; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() { printf '%-11s %s\n' "$1" "$2"; }

# call TOKEN METHOD PATH [curl's arguments]: prints the body, keeps status and headers, and ends the walk on a refusal.
call() {
  status=$(ask "$@")
  [ "$status" -lt 400 ] || { echo "$2 $3 answered $status: $(cat "$work/body")" >&2; exit 1; }
  cat "$work/body"
}

# As `call`, but prints the status, whatever it is.
ask() {
  local token=$1 method=$2 path=$3
  shift 3
  curl -sS --max-time 60 -X "$method" -H "Authorization: Bearer $token" \
    -D "$work/headers" -o "$work/body" -w '%{http_code}' "$@" "$BAKEHOUSE_URL$path"
}

# send TOKEN METHOD PATH JSON [curl's arguments]
send() {
  local json=$4 token=$1 method=$2 path=$3
  shift 4
  call "$token" "$method" "$path" -H 'Content-Type: application/json' --data "$json" "$@"
}

header() { tr -d '\r' <"$work/headers" | awk -v name="$1:" 'tolower($1) == tolower(name) { print $2 }'; }

video=${1:-}
if [ -z "$video" ]; then
  command -v ffmpeg >/dev/null || { echo 'name a video, or put ffmpeg on PATH to have one made' >&2; exit 1; }
  video=$work/squat.mp4
  ffmpeg -loglevel error -nostdin -f lavfi -i testsrc2=size=640x360:rate=25:duration=2 \
    -c:v libx264 -preset ultrafast -pix_fmt yuv420p "$video"
fi

# The clinic's manager brings an exercise in.
exercise=$(send "$MANAGER_TOKEN" POST /v1/exercises '{"names":{"en":"Squat","de":"Kniebeuge"}}' | jq -r .id)
say exercise "$exercise, with a name in two languages and no film yet"

film=$(call "$MANAGER_TOKEN" PUT "/v1/exercises/$exercise/source" -H 'Content-Type: application/octet-stream' \
  --upload-file "$video" | jq -r '"\(.facts.width)×\(.facts.height), \(.facts.durationMs) ms, warnings: \(.warnings | map(.code) | join(", "))"')
say source "$film, as measured by decoding it"

# A specialist prescribes it: one session, two doses, so two different videos.
program=$(send "$SPECIALIST_TOKEN" POST /v1/programs "$(jq -n --arg exercise "$exercise" '{
  title: "Knee, first month", language: "en",
  sessions: [{ title: "Mornings", items: [
    { exerciseId: $exercise, dose: { sets: 1, reps: 2, leadInSeconds: 1, cues: "beeps" } },
    { exerciseId: $exercise, dose: { sets: 1, reps: 3, leadInSeconds: 1, cues: "none" } } ] }] }')" | tee "$work/program" | jq -r .id)
session=$(jq -r '.sessions[0].id' "$work/program")
say programme "$program, a draft of $(jq '[.sessions[].items[]] | length' "$work/program") items"

say preview "$(call "$SPECIALIST_TOKEN" GET "/v1/programs/$program/publish-preview" | jq -c '{total, ready, toBake}'), and nothing is changed by looking"

# Sent twice with one key, it is done once.
for _ in 1 2; do
  published=$(call "$SPECIALIST_TOKEN" POST "/v1/programs/$program/publish" -H "Idempotency-Key: walk-$program" | jq -c .)
done
say publish "$published; again with the same Idempotency-Key: replayed $(header Idempotency-Replayed)"

send "$SPECIALIST_TOKEN" POST "/v1/programs/$program/assignments" \
  "$(jq -n --arg patient "$patient_id" '{ patientId: $patient, notifyWhenReady: true }')" >/dev/null
say assign "to $patient_id, who is to be told when it is ready"

early=$(ask "$PATIENT_TOKEN" POST "/v1/sessions/$session/runs")
say 'too early' "a run is refused with $early $(jq -r .code "$work/body")"

# One of the two videos is given up while it waits or is made, and asked for again.
render=$(call "$MANAGER_TOKEN" GET "/v1/programs/$program/renders" | jq -r '.items[-1].id')
say cancel "$(send "$MANAGER_TOKEN" POST "/v1/renders/$render/cancel" '{}' | jq -c '{status, generation}')"
say failed "$(call "$PATIENT_TOKEN" GET "/v1/programs/$program/readiness" | jq -c '{status, code: .failed[0].code, patientSentence: .failed[0].patientSentence}')"
say retry "$(send "$MANAGER_TOKEN" POST "/v1/renders/$render/retry" '{}' | jq -c '{status, generation}')"

# The patient's app polls: 304 while nothing has changed, and with `wait` it hears at once.
call "$PATIENT_TOKEN" GET "/v1/programs/$program/readiness" >"$work/readiness"
etag=$(header ETag)
for ((round = 1; round <= 20; round++)); do
  say readiness "$(jq -c '{status, ready, total, eta}' "$work/readiness")"
  state=$(jq -r .status "$work/readiness")
  [ "$state" = preparing ] || break
  answer=$(ask "$PATIENT_TOKEN" GET "/v1/programs/$program/readiness?wait=25" -H "If-None-Match: $etag")
  if [ "$answer" = 304 ]; then continue; fi
  cp "$work/body" "$work/readiness"
  etag=$(header ETag)
done
[ "$state" = ready ] || { echo "the programme is $state: $(cat "$work/readiness")" >&2; exit 1; }
say unchanged "with the ETag it is $(ask "$PATIENT_TOKEN" GET "/v1/programs/$program/readiness" -H "If-None-Match: $etag")"

call "$PATIENT_TOKEN" GET "/v1/sessions/$session/play" >"$work/play"
jq -r '.items[] | "\(.position + 1): \(.exerciseName), \(.durationMs) ms, \(.hlsUrl)"' "$work/play" |
  while read -r item; do say play "$item"; done
curl -sS --fail --max-time 60 "$(jq -r '.items[0].hlsUrl' "$work/play")" >"$work/playlist"
say playlist "$(head -1 "$work/playlist"), of $(grep -c '^#EXT-X-STREAM-INF' "$work/playlist") sizes"
curl -sS --fail --max-time 60 "$(jq -r '.items[0].manifestUrl' "$work/play")" >"$work/manifest"
say manifest "$(jq -r 'keys | join(", ")' "$work/manifest")"

run=$(call "$PATIENT_TOKEN" POST "/v1/sessions/$session/runs" | jq -r .id)
say run "$run: the patient trains"

again=$(ask "$MANAGER_TOKEN" POST "/v1/renders/$render/retry" -H 'Content-Type: application/json' --data '{}')
say ready "asking again for what is ready is refused with $again $(jq -r .code "$work/body")"
