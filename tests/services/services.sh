#!/usr/bin/env bash
# Real servers for tests, on free ports and in folders of their own. `services.sh help` lists the commands.
#
# `run` becomes the server itself (same process id, foreground) and dies with whoever started it, also when that one
# is killed. A server's folder must be open to other users: PostgreSQL and PgBouncer refuse to run as root, so root
# runs them as postgres.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
readonly postgres_bin=/usr/lib/postgresql/15/bin
readonly cache=${MILLRACE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/millrace}
readonly kafka=$cache/kafka-4.4.0
kinesis=$cache/node-$(sha256sum "$here/package-lock.json" | head -c 12)  # and the DynamoDB
moto=$cache/moto-$(sha256sum "$here/requirements.txt" | head -c 12)
python_client=$cache/python-client-$(sha256sum "$here/requirements-clients.txt" | head -c 12)
java_client=$cache/java-client-$(sha256sum "$here/pom-clients.xml" | head -c 12)
readonly kinesis moto python_client java_client
readonly registry=$cache/apicurio-registry-3.0.9
readonly short_lived_java=(java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1)

die() { printf 'services: %s\n' "$*" >&2; exit 1; }

is_root() { [ "$(id -u)" -eq 0 ]; }

# as_postgres COMMAND ...: runs it as postgres when root, otherwise as the caller.
as_postgres() {
    if is_root; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

# become SIGNAL COMMAND ...: replaces this process; the command gets SIGNAL when the parent of this process ends.
become() {
    local signal=$1
    shift
    exec setpriv --pdeathsig "$signal" "$@"
}

become_postgres() {
    local signal=$1
    shift
    cd /
    is_root || become "$signal" "$@"
    exec setpriv --reuid postgres --regid postgres --init-groups --pdeathsig "$signal" "$@"
}

# Ports below the range that the kernel gives to clients: while a server is down, a client that dials it again and
# again cannot be given its port, nor connect to itself.
free_port() {
    local port hex
    while :; do
        port=$((10000 + (RANDOM << 15 | RANDOM) % 22000))
        printf -v hex ':%04X ' "$port"
        grep -qs "$hex" /proc/net/tcp /proc/net/tcp6 || break
    done
    echo "$port"
}

# make_once FOLDER COMMAND: COMMAND FOLDER.new makes what is to be in the cache's folder, unless it is there. Files
# are made complete in a folder beside and moved, so that whoever sees the folder sees all of it.
make_once() {
    local folder=$1 make=$2 lock
    [ ! -d "$folder" ] || return 0
    mkdir -p "$cache"
    exec {lock}>"$cache/lock"
    flock "$lock"
    if [ ! -d "$folder" ]; then
        rm -rf "$folder.new"
        mkdir "$folder.new"
        "$make" "$folder.new"
        mv "$folder.new" "$folder"
    fi
    exec {lock}>&-
}

install_kafka() {
    make_once "$kafka" make_kafka
    [ ! -f "$kafka/classes" ] || return 0
    local lock
    exec {lock}>"$cache/lock"
    flock "$lock"
    [ -f "$kafka/classes" ] || archive_classes
    exec {lock}>&-
}

make_kafka() {
    mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$1/libs" || die "Maven cannot fetch Kafka; see above"
    make_certificates "$1/tls"
    format_kafka "$1"
}

install_kinesis() { make_once "$kinesis" make_kinesis; }

# Certificates of its own: those in the package are nobody's.
make_kinesis() {
    cp "$here/package.json" "$here/package-lock.json" "$1"
    (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2) ||
        die "npm cannot fetch the Kinesis and the DynamoDB of the tests; see above"
    make_certificates "$1/tls"
    node -e 'const [fs, tls] = [require("fs"), process.argv[1]];
        const text = name => fs.readFileSync(tls + "/" + name, "utf8");
        fs.writeFileSync(tls + "/server.json", JSON.stringify({ server: { cert: text("server.crt"), key: text("server.key") } }))' "$1/tls"
}

install_registry() { make_once "$registry" make_registry; }

make_registry() {
    mvn -q -B -f "$here/pom.xml" dependency:copy -DoutputDirectory="$1" \
        -Dartifact=io.apicurio:apicurio-registry-app:3.0.9:tar.gz:all >&2 ||
        die "Maven cannot fetch the schema registry; see above"
    tar -xzf "$1"/*.tar.gz -C "$1" || die "the schema registry cannot be unpacked; see above"
    rm "$1"/*.tar.gz
}

install_moto() { make_once "$moto" make_moto; }

make_moto() {
    python3 -m venv "$1" || die "python3 -m venv fails; see above"
    "$1/bin/python" -m pip install -q --no-deps -r "$here/requirements.txt" || die "pip cannot fetch moto; see above"
}

install_python_client() { make_once "$python_client" make_python_client; }

make_python_client() {
    python3 -m venv "$1" || die "python3 -m venv fails; see above"
    "$1/bin/python" -m pip install -q --no-deps -r "$here/requirements-clients.txt" ||
        die "pip cannot fetch the Python client; see above"
}

install_java_client() { make_once "$java_client" make_java_client; }

make_java_client() {
    mvn -q -B -f "$here/pom-clients.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$1/libs" >&2 || die "Maven cannot fetch the Java client; see above"
}

# Standard clients of schema registries, for a program of the test.
python_client() {
    install_python_client
    exec env PYTHONDONTWRITEBYTECODE=1 "$python_client/bin/python" "$@"
}

java_client() {
    install_java_client
    exec "${short_lived_java[@]}" -cp "$java_client/libs/*" "$@"
}

make_certificates() {
    local name
    mkdir "$1"
    for name in ca other-ca; do
        openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj "/CN=millrace $name" \
            -keyout "$1/$name.key" -out "$1/$name.crt" 2>/dev/null
    done
    for name in server client; do
        openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$1/$name.key" -out "$1/$name.csr" 2>/dev/null
        openssl x509 -req -in "$1/$name.csr" -CA "$1/ca.crt" -CAkey "$1/ca.key" -CAcreateserial -days 3650 \
            -extfile <(echo "subjectAltName=DNS:localhost,IP:127.0.0.1") -out "$1/$name.crt" 2>/dev/null
    done
    cat "$1/server.key" "$1/server.crt" >"$1/keystore.pem"
}

# Formats a data folder once; every instance begins as a copy of it, which saves a Java start.
format_kafka() {
    local id
    id=A$(head -c 16 /dev/urandom | basenc --base64url | tr -d = | tail -c +2)  # must not begin with "-"
    kafka_properties "$1/formatted" "$1/tls" 1 2 3 4 >"$1/format.properties"
    "${short_lived_java[@]}" -cp "$1/libs/*" kafka.tools.StorageTool format -t "$id" -c "$1/format.properties" \
        --add-scram 'SCRAM-SHA-256=[name=bob,password=bob-secret]' \
        --add-scram 'SCRAM-SHA-512=[name=bob,password=bob-secret]' >"$1/format.log" 2>&1 ||
        die "cannot format Kafka's data folder: $(tail -n 3 "$1/format.log")"
}

# Runs a broker once to keep its loaded classes in an archive: with it, a start costs 2 CPU-seconds instead of 5.
# Java ignores the archive when it does not fit.
archive_classes() {
    local folder limit=$((SECONDS + 120)) broker
    folder=$(mktemp -d "${TMPDIR:-/tmp}/millrace-classes-XXXXXX")
    kafka_init "$folder" >/dev/null
    kafka_run "$folder" -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit="$folder/classes" >"$folder/log" 2>&1 &
    broker=$!
    until grep -q 'Kafka Server started' "$folder/log"; do
        kill -0 $broker 2>/dev/null || die "Kafka does not start: $(tail -n 5 "$folder/log")"
        [ $SECONDS -lt $limit ] || die "Kafka does not start within 2 minutes"
        sleep 0.1
    done
    kill $broker
    wait $broker || true  # ended by a signal
    mv "$folder/classes" "$kafka/classes"
    rm -rf "$folder"
}

# kafka_properties DATA TLS PLAINTEXT CONTROLLER SSL SASL (ports)
kafka_properties() {
    local data=$1 tls=$2 plaintext=$3 controller=$4 ssl=$5 sasl=$6
    local listeners=PLAINTEXT://127.0.0.1:$plaintext,SSL://127.0.0.1:$ssl,SASL_PLAINTEXT://127.0.0.1:$sasl
    local login=org.apache.kafka.common.security
    cat <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller
listeners=$listeners,CONTROLLER://127.0.0.1:$controller
advertised.listeners=$listeners
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
log.dirs=$data
num.partitions=8
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=16777216
log.segment.bytes=134217728
ssl.keystore.type=PEM
ssl.keystore.location=$tls/keystore.pem
ssl.truststore.type=PEM
ssl.truststore.location=$tls/ca.crt
ssl.client.auth=requested
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.sasl_plaintext.plain.sasl.jaas.config=$login.plain.PlainLoginModule required user_alice="alice-secret" user_admin="admin-secret";
listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config=$login.scram.ScramLoginModule required;
listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config=$login.scram.ScramLoginModule required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
allow.everyone.if.no.acl.found=true
super.users=User:admin
PROPERTIES
}

# kafka_init FOLDER [--proxied PORT] [name=value ...]: with --proxied one more listener, which tells its clients to
# connect to PORT, where a proxy of the test listens.
kafka_init() {
    local folder=$1 proxied='' listener controller
    shift
    if [ "${1:-}" = --proxied ]; then proxied=$2; shift 2; fi
    [ -d "$kafka" ] || install_kafka
    mkdir -p "$folder"
    cp -r "$kafka/formatted" "$folder/data"
    local plaintext ssl sasl
    plaintext=$(free_port) controller=$(free_port) ssl=$(free_port) sasl=$(free_port)
    kafka_properties "$folder/data" "$kafka/tls" "$plaintext" "$controller" "$ssl" "$sasl" >"$folder/server.properties"
    {
        echo "plaintext=$plaintext"
        echo "ssl=$ssl"
        echo "sasl=$sasl"
        echo "tls=$kafka/tls"
    } >"$folder/address"
    if [ -n "$proxied" ]; then
        listener=$(free_port)
        sed -i -e "s|^listeners=.*|&,PROXIED://127.0.0.1:$listener|" \
            -e "s|^advertised.listeners=.*|&,PROXIED://127.0.0.1:$proxied|" "$folder/server.properties"
        echo "proxied=$listener" >>"$folder/address"
    fi
    [ $# -eq 0 ] || printf '%s\n' "$@" >>"$folder/server.properties"
    cat "$folder/address"
}

# kafka_run FOLDER [JAVA_OPTION ...]; MILLRACE_KAFKA_JAVA: what a measurement needs, such as -XX:+TieredCompilation
# for the optimising compiler.
# shellcheck disable=SC2120
kafka_run() {
    local folder=$1
    shift
    # shellcheck disable=SC2086  # words on purpose
    [ $# -gt 0 ] || set -- -XX:SharedArchiveFile="$kafka/classes" ${MILLRACE_KAFKA_JAVA:--XX:TieredStopAtLevel=1}
    become KILL java -Xms256m -Xmx384m -XX:+UseSerialGC "$@" -cp "$kafka/libs/*" \
        -Dlog4j2.configurationFile="$here/log4j2.yaml" kafka.Kafka "$folder/server.properties"
}

# kafka_tool TopicCommand|ConfigCommand|AclCommand|... ARGUMENT ...
kafka_tool() {
    local tool=$1
    shift
    install_kafka
    exec "${short_lived_java[@]}" -cp "$kafka/libs/*" "org.apache.kafka.tools.$tool" "$@"
}

# postgres_init FOLDER [--standby-of PORT] [name=value ...]
postgres_init() {
    local folder=$1 primary='' port
    shift
    if [ "${1:-}" = --standby-of ]; then primary=$2; shift 2; fi
    [ -x $postgres_bin/postgres ] || die "postgresql-15 is not installed"
    mkdir -p "$folder/data" "$folder/socket"
    ! is_root || chown postgres: "$folder" "$folder/data" "$folder/socket"
    chmod 700 "$folder/data"
    port=$(free_port)
    if [ -n "$primary" ]; then
        as_postgres $postgres_bin/pg_basebackup -D "$folder/data" -d "host=127.0.0.1 port=$primary user=postgres" \
            -R -c fast --no-sync >"$folder/init.log" 2>&1 || die "pg_basebackup: $(tail -n 3 "$folder/init.log")"
    else
        as_postgres env LC_ALL=C.UTF-8 $postgres_bin/initdb -D "$folder/data" -U postgres -A trust -E UTF8 \
            --locale=C.UTF-8 --no-sync >"$folder/init.log" 2>&1 || die "initdb: $(tail -n 3 "$folder/init.log")"
        # Kills of a server process lose nothing without fsync; only a crash of the machine would.
        cat >>"$folder/data/postgresql.conf" <<CONFIGURATION
listen_addresses='127.0.0.1'
max_connections=200
max_prepared_transactions=20
wal_level=logical
fsync=off
shared_buffers=64MB
CONFIGURATION
    fi
    {
        echo "port=$port"
        echo "unix_socket_directories='$folder/socket'"
        [ $# -eq 0 ] || printf '%s\n' "$@"
    } >>"$folder/data/postgresql.conf"
    echo "port=$port" | tee "$folder/address"
}

# The death signal is the immediate shutdown: the server takes its children with it.
postgres_run() { become_postgres QUIT $postgres_bin/postgres -D "$1/data"; }

# pgbouncer_init FOLDER PORT [name=value ...]: pools transactions of the PostgreSQL at PORT, whose user postgres it is.
pgbouncer_init() {
    local folder=$1 server=$2 port
    shift 2
    command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || die "pgbouncer is not installed"
    port=$(free_port)
    mkdir -p "$folder"
    cat >"$folder/pgbouncer.ini" <<CONFIGURATION
[databases]
* = host=127.0.0.1 port=$server user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 200
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
CONFIGURATION
    [ $# -eq 0 ] || printf '%s\n' "$@" >>"$folder/pgbouncer.ini"
    echo "port=$port" | tee "$folder/address"
}

pgbouncer_run() { become_postgres KILL /usr/sbin/pgbouncer "$1/pgbouncer.ini"; }

# kinesis_init FOLDER [NAME=value ...] (environment, such as SHARD_LIMIT=50)
kinesis_init() {
    local folder=$1 port tls
    shift
    install_kinesis
    mkdir -p "$folder"
    port=$(free_port) tls=$(free_port)
    printf '%s\n' SHARD_LIMIT=2000 LOG_LEVEL=ERROR "$@" >"$folder/environment"
    printf '%s\n' "port=$port" "tls_port=$tls" "tls=$kinesis/tls" | tee "$folder/address"
}

kinesis_run() {
    local folder=$1 what environment=()
    for what in CREATE_STREAM DELETE_STREAM SPLIT_SHARD MERGE_SHARDS UPDATE_SHARD_COUNT REGISTER_STREAM_CONSUMER \
        DEREGISTER_STREAM_CONSUMER; do
        environment+=("${what}_DURATION=5ms")
    done
    mapfile -t -O ${#environment[@]} environment <"$folder/environment"
    cd "$folder"  # where it may keep data
    become KILL env "${environment[@]}" KINESIS_MOCK_CERT_PATH="$kinesis/tls/server.json" \
        KINESIS_MOCK_PLAIN_PORT="$(in_address port "$folder")" KINESIS_MOCK_TLS_PORT="$(in_address tls_port "$folder")" \
        node "$kinesis/node_modules/kinesis-local/main.js"
}

# dynamodb_init FOLDER [ARGUMENT ...]: keeps its data in the folder, over a SIGKILL, too.
dynamodb_init() {
    local folder=$1
    shift
    install_kinesis
    mkdir -p "$folder/data"
    [ $# -eq 0 ] || printf '%s\n' "$@" >"$folder/arguments"
    echo "port=$(free_port)" | tee "$folder/address"
}

dynamodb_run() {
    local arguments=()
    [ ! -f "$1/arguments" ] || mapfile -t arguments <"$1/arguments"
    become KILL node "$kinesis/node_modules/dynalite/cli.js" --host 127.0.0.1 --port "$(in_address port "$1")" \
        --path "$1/data" --createTableMs 5 --deleteTableMs 5 --updateTableMs 5 "${arguments[@]}"
}

moto_init() {
    install_moto
    mkdir -p "$1"
    echo "port=$(free_port)" | tee "$1/address"
}

# Signatures are checked after a test has posted 0 to /moto-api/reset-auth.
moto_run() {
    become KILL env INITIAL_NO_AUTH_ACTION_COUNT=999999999 \
        "$moto/bin/python" "$here/moto_server.py" -H 127.0.0.1 -p "$(in_address port "$1")"
}

registry_init() {
    local folder=$1
    shift
    install_registry
    mkdir -p "$folder"
    [ $# -eq 0 ] || printf '%s\n' "$@" >"$folder/environment"
    echo "port=$(free_port)" | tee "$folder/address"
}

# Keeps its data in the folder, over a SIGKILL, too.
registry_run() {
    local folder=$1 environment=()
    [ ! -f "$folder/environment" ] || mapfile -t environment <"$folder/environment"
    cd "$folder"
    become KILL env QUARKUS_HTTP_HOST=127.0.0.1 QUARKUS_HTTP_PORT="$(in_address port "$folder")" \
        APICURIO_STORAGE_KIND=sql APICURIO_STORAGE_SQL_KIND=h2 \
        APICURIO_DATASOURCE_URL="jdbc:h2:file:$folder/data;WRITE_DELAY=0" "${environment[@]}" \
        java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -jar "$registry/apicurio-registry-app-3.0.9-runner.jar"
}

# in_address NAME FOLDER
in_address() { sed -n "s/^$1=//p" "$2/address"; }

# http_answers PORT PATH
http_answers() {
    local connection status
    { exec {connection}<>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null || return 1
    printf 'GET %s HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n' "$2" >&"$connection"
    IFS= read -r -t 5 status <&"$connection" || status=
    exec {connection}>&-
    [[ $status == HTTP/1.?\ 200* ]]
}

# For each of the shared servers: is it ready, and what are its addresses?
postgres_ready() { $postgres_bin/pg_isready -q -h 127.0.0.1 -p "$(in_address port "$1")" -U postgres; }
postgres_names() { echo "MILLRACE_TEST_POSTGRES=postgresql://postgres@127.0.0.1:$(in_address port "$1")/postgres"; }
kafka_ready() { grep -q 'Kafka Server started' "$2"; }
kafka_names() {
    sed -n -e 's/^plaintext=/MILLRACE_TEST_KAFKA=127.0.0.1:/p' -e 's/^ssl=/MILLRACE_TEST_KAFKA_SSL=127.0.0.1:/p' \
        -e 's/^sasl=/MILLRACE_TEST_KAFKA_SASL=127.0.0.1:/p' -e 's/^tls=/MILLRACE_TEST_TLS=/p' "$1/address"
}
kinesis_ready() { http_answers "$(in_address port "$1")" /healthcheck; }
kinesis_names() {
    echo "MILLRACE_TEST_KINESIS=http://127.0.0.1:$(in_address port "$1")"
    echo "MILLRACE_TEST_KINESIS_TLS=https://localhost:$(in_address tls_port "$1")"
    echo "MILLRACE_TEST_KINESIS_CA=$(in_address tls "$1")/ca.crt"
}
dynamodb_ready() { http_answers "$(in_address port "$1")" /; }
dynamodb_names() { echo "MILLRACE_TEST_DYNAMODB=http://127.0.0.1:$(in_address port "$1")"; }
moto_ready() { http_answers "$(in_address port "$1")" /moto-api/; }
registry_base=/apis/ccompat/v7
registry_ready() { http_answers "$(in_address port "$1")" $registry_base/subjects; }
registry_names() { echo "MILLRACE_TEST_REGISTRY=http://127.0.0.1:$(in_address port "$1")$registry_base"; }
moto_names() { echo "MILLRACE_TEST_MOTO=http://127.0.0.1:$(in_address port "$1")"; }

# shared FOLDER SERVER ...: runs one of each; FOLDER/env names them once all answer; until SIGTERM or SIGINT.
shared() {
    local folder=$1 data server limit=$((SECONDS + 180))
    shift
    mkdir -p "$folder"
    rm -f "$folder/env" "$folder/env.new"
    echo $$ >"$folder/pid"
    data=$(mktemp -d "${TMPDIR:-/tmp}/millrace-services-XXXXXX")
    chmod 755 "$data"
    declare -gA pids=()
    # shellcheck disable=SC2064  # these names are local
    trap "rm -f '$folder/env'; end_servers; rm -rf '$data' '$folder/pid'" EXIT
    trap 'exit 0' TERM INT HUP
    for server in "$@"; do
        "${server}_init" "$data/$server" >/dev/null
        "${server}_run" "$data/$server" >"$folder/$server.log" 2>&1 &
        pids[$server]=$!
    done
    for server in "$@"; do
        until "${server}_ready" "$data/$server" "$folder/$server.log"; do
            kill -0 "${pids[@]}" 2>/dev/null || die "a server has ended; see $folder/*.log"
            [ $SECONDS -lt $limit ] || die "no $server within 3 minutes; see $folder/$server.log"
            sleep 0.1
        done
        "${server}_names" "$data/$server" >>"$folder/env.new"
    done
    mv "$folder/env.new" "$folder/env"
    wait -n "${pids[@]}" || true
    die "a server has ended; see $folder/*.log"
}

# PostgreSQL shuts down at once by SIGQUIT, and takes its children with it; the others keep nothing.
end_servers() {
    local server signal
    for server in "${!pids[@]}"; do
        if [ "$server" = postgres ]; then signal=QUIT; else signal=KILL; fi
        kill -$signal "${pids[$server]}" 2>/dev/null || true  # may have ended
    done
    wait
}

install() {
    local server
    for server in "$@"; do
        case $server in
            postgres) ;;  # a package
            dynamodb) install_kinesis ;;
            *) "install_${server//-/_}" ;;
        esac
    done
}

help() {
    cat <<'TEXT'
usage: services.sh COMMAND ...

  install SERVER ...                                   fetch what is no package of the system into the cache, once
      SERVER: also python-client (pip), java-client (Maven)
  shared FOLDER SERVER ...                             run what tests share; addresses in FOLDER/env
      SERVER: postgres, kafka, registry (Maven), kinesis, dynamodb (npm), moto (pip)
  postgres init FOLDER [--standby-of PORT] [name=value ...]
  kafka init FOLDER [--proxied PORT] [name=value ...]
  pgbouncer init FOLDER POSTGRES_PORT [name=value ...]
  kinesis init FOLDER [NAME=value ...]                 environment, such as SHARD_LIMIT=50
  dynamodb init FOLDER [ARGUMENT ...]                  dynalite's, such as --createTableMs 500
  moto init FOLDER
  registry init FOLDER [NAME=value ...]                environment, such as APICURIO_CCOMPAT_MAX_SUBJECTS=10
                                                       prepare an instance and print its ports
  postgres|kafka|pgbouncer|kinesis|dynamodb|moto|registry run FOLDER
                                                       become the server
  kafka tool TopicCommand|ConfigCommand|AclCommand|... ARGUMENT ...
  python-client FILE ARGUMENT ...                      Python with the Kafka client of Confluent
  java-client FILE ARGUMENT ...                        Java with the deserialisers of Apicurio
TEXT
}

command=${1:-help}
case "$command${2:+ $2}" in
    install\ *) shift; install "$@" ;;
    shared\ *) shift; shared "$@" ;;
    kafka\ tool) shift 2; kafka_tool "$@" ;;
    python-client\ * | java-client\ *) shift; "${command/-/_}" "$@" ;;
    postgres\ init | postgres\ run | kafka\ init | kafka\ run | pgbouncer\ init | pgbouncer\ run | \
        kinesis\ init | kinesis\ run | dynamodb\ init | dynamodb\ run | moto\ init | moto\ run | \
        registry\ init | registry\ run)
        verb=$2
        shift 2
        "${command}_$verb" "$@"
        ;;
    help) help ;;
    *) help >&2; die "unknown command: $*" ;;
esac
