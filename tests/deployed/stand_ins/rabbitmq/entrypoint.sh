#!/bin/sh
set -eu
cat > /etc/rabbitmq/rabbitmq.conf <<CONFIGURATION
default_user = $RABBITMQ_DEFAULT_USER
default_pass = $RABBITMQ_DEFAULT_PASS
loopback_users = none
listeners.tcp.default = 5672
CONFIGURATION
exec rabbitmq-server
