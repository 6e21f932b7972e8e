# The whole suite in one container, to be tried: services, a private RabbitMQ, SQLite and files in /data. Never for production: there
# each service is an image of its own (services/Dockerfile, which says why each step is there). Built from the repository's root:
# docker build -f deploy/trial.Dockerfile --build-arg REVISION=$(git rev-parse HEAD) -t countersign/trial .
# docker run --rm -p 127.0.0.1:8000:8000 -v countersign:/data countersign/trial
ARG PYTHON=python:3.11-slim-bookworm

FROM ${PYTHON} AS packages
RUN apt-get update && apt-get install -y --no-install-recommends binutils
COPY deploy/release/image/packages.sh deploy/release/image/trim.py /build/
COPY deploy/locks/all.txt /build/lock.txt
RUN sh /build/packages.sh /build/lock.txt

FROM ${PYTHON} AS trimmed
COPY deploy/release/image/base.sh deploy/release/image/forget.sh /build/
RUN groupadd --gid 10001 countersign \
    && SOURCE_DATE_EPOCH=0 useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin \
        countersign \
    && install -d -m 0700 -o 10001 -g 10001 /data \
    && sh /build/base.sh && rm -r /build

FROM scratch
COPY --from=trimmed / /
ENV PATH=/venv/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin LANG=C.UTF-8
ARG SOURCE_DATE_EPOCH=0
COPY deploy/release/image/office.sh deploy/release/image/forget.sh /build/
# As deploy/local.py installs them (RUN_PACKAGES); what it calls poppler-utils is for the demo.
RUN apt-get update && apt-get install -y --no-install-recommends \
        fonts-crosextra-caladea fonts-crosextra-carlito fonts-liberation \
        fonts-noto-cjk fonts-noto-core fonts-symbola fonts-unifont \
        libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 \
        libreoffice-writer \
        rabbitmq-server \
    # A secret by chance, which installing makes: the suite's broker makes its own.
    && rm -f /var/lib/rabbitmq/.erlang.cookie \
    && sh /build/office.sh && rm -r /build
WORKDIR /app
COPY --from=packages /venv /venv
COPY deploy/locks/all.txt lock.txt
COPY LICENSE NOTICE pyproject.toml ./
COPY contracts contracts
COPY services services
COPY docs docs
COPY deploy deploy
RUN PYTHONHASHSEED=0 python -B -m compileall -q -f --invalidation-mode unchecked-hash contracts services deploy
# After what takes long, because it is another one with each commit.
# buildah takes ENV and LABEL from its cache although REVISION is another one, but nothing that follows a RUN which names it.
ARG REVISION=unknown
RUN : "${REVISION}"
USER 10001:10001
# The providers to be tried have pages at addresses that are reached inside the container only.
ENV PYTHONUNBUFFERED=1 XDG_CACHE_HOME=/tmp/cache VAR_DIR=/data HOST=0.0.0.0 PORT=8000 PROVIDERS_TO_TRY=no
VOLUME /data
EXPOSE 8000
HEALTHCHECK --start-period=120s --interval=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=5)"]
CMD ["python", "-m", "deploy.suite"]
ENV COUNTERSIGN_REVISION=${REVISION}
LABEL org.opencontainers.image.title="Countersign, to be tried" \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=0.1.0 \
      org.opencontainers.image.revision=${REVISION}
