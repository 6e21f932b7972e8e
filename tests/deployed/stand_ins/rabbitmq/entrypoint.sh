#!/bin/sh
set -eu
cat > /etc/rabbitmq/rabbitmq.conf <<CONFIGURATION
loopback_users = none
listeners.tcp.default = 5672
CONFIGURATION
cat /etc/rabbitmq/conf.d/*.conf >> /etc/rabbitmq/rabbitmq.conf
exec rabbitmq-server
