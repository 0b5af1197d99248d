#!/usr/bin/env bash
# Runs studies on a bare GPU host inside one command's time; what is measured comes back whatever happens.
#
#   bash tests/gpu/study.sh SECONDS OUT STUDY_FOLDER...     (from the repository root)
#
# SECONDS counts from the start of this script. Measurements that already stand in a STUDY_FOLDER, or that an
# earlier call left in $HOME/studies, are gone on with. OUT gets one NAME.tar.xz a study: the study's files,
# the lines said, the end of every engine's log. PYTHON (default python3) holds vLLM and the core.
set -uo pipefail
limit=$1 out=$2 least=${LEAST:-200} # seconds: no engine is built in less
shift 2
export PYTHONPATH=${PYTHONPATH:-$HOME/site:$PWD/src} PYTHONUNBUFFERED=1
export VLLM_CACHE_ROOT=${VLLM_CACHE_ROOT:-$HOME/vllm_cache}
python=$(command -v "${PYTHON:-python3}")
status=0
for folder in "$@"; do
  name=$(basename "$folder") here=$HOME/studies/$(basename "$folder")
  if ((limit - SECONDS < least)); then
    echo "$name: not begun, $((limit - SECONDS)) s left"
    status=1
    continue
  fi
  mkdir -p "$here" "$here.work"
  cp -n "$folder"/* "$here"/
  timeout --signal=INT --kill-after=8 $((limit - SECONDS + 20)) \
    "$python" -m fitladder.study.run "$folder/study.yaml" --out "$here" --work "$here.work" --models models \
    --engine-python "$python" --stop-after-s $((limit - SECONDS)) 2>&1 | tee -a "$here.work/said.txt" || status=1
  tail -n 300 "$here.work"/*.log > "$here.work/engines.txt" 2>/dev/null
  tar -C "$HOME/studies" -cJf "$out/$name.tar.xz" "$name" "$name.work/said.txt" "$name.work/engines.txt"
  cat "$here/table.md" 2>/dev/null
done
exit $status
