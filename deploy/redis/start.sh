#!/bin/sh
# Starts Redis with kcm's users. The passwords come from the environment and go
# into the ACL file as SHA-256, so that neither arguments nor files show them.
# Further arguments go to redis-server.
#
# Nobody can log in as user `default`, and yet it may do everything: Redis replays
# its append-only file as `default`, and drops each script's and transaction's writes
# that `default` may not make. Without these rights a restart loses every object.
set -eu
umask 077

hash_of() {
    printf '%s' "$1" | sha256sum | cut -d ' ' -f 1
}

folder=$(dirname "$0")
users=${KCM_ACL_FILE:-/tmp/users.acl}
sed \
    -e "s/@PREFIX@/${KCM_PREFIX:-kcm}/g" \
    -e "s/@WORKER@/$(hash_of "${KCM_WORKER_PASSWORD:?is not set}")/" \
    -e "s/@INJECTOR@/$(hash_of "${KCM_INJECTOR_PASSWORD:?is not set}")/" \
    -e "s/@FLOWER@/$(hash_of "${KCM_FLOWER_REDIS_PASSWORD:?is not set}")/" \
    "$folder/users.acl" > "$users"

exec "${KCM_REDIS_SERVER:-redis-server}" \
    --aclfile "$users" \
    --appendonly yes \
    --appendfsync everysec \
    --maxmemory-policy noeviction \
    "$@"
