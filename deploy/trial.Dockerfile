# The whole suite in one container, to be tried: services, a private RabbitMQ, SQLite and files in /data. Never for production: there
# each service is an image of its own (services/Dockerfile). Built from the repository's root:
# docker build -f deploy/trial.Dockerfile --build-arg REVISION=$(git rev-parse HEAD) -t countersign/trial .
# docker run --rm -p 127.0.0.1:8000:8000 -v countersign:/data countersign/trial
ARG PYTHON=python:3.11-slim-bookworm
FROM ${PYTHON}
# As deploy/local.py installs them (RUN_PACKAGES); what it calls poppler-utils is for the demo.
RUN apt-get update && apt-get install -y --no-install-recommends \
        fonts-crosextra-caladea fonts-crosextra-carlito fonts-liberation \
        fonts-noto-cjk fonts-noto-core fonts-symbola fonts-unifont \
        libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0 \
        libreoffice-writer \
        rabbitmq-server \
    && apt-get clean && rm -rf /var/lib/apt/lists/* /usr/share/locale /usr/share/man \
    && find /usr/share/doc -type f ! -name copyright -delete \
    && find /usr/share/fonts -type d -exec touch -d @0 {} + && fc-cache --force
RUN groupadd --gid 10001 countersign \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin countersign \
    && install -d -m 0700 -o 10001 -g 10001 /data
WORKDIR /app
COPY deploy/locks/all.txt lock.txt
# Of S3's library only what it needs to reach S3 and to get credentials is kept, of that for telephone numbers nothing that says whose they are:
# 70 MB. What is left must still do its work.
RUN pip install --no-cache-dir --no-deps --only-binary=:all: --require-hashes -r lock.txt \
    && cd "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" \
    && find botocore/data -mindepth 1 -maxdepth 1 -type d \
        ! -name s3 ! -name sts ! -name sso ! -name sso-oidc ! -name signin -exec rm -r {} + \
    && rm -rf phonenumbers/geodata phonenumbers/carrierdata phonenumbers/tzdata \
    && python -c 'from boto3 import client; [client(name, region_name="eu-west-1") for name in ("s3", "sts", "sso", "sso-oidc")]'
COPY LICENSE NOTICE pyproject.toml ./
COPY contracts contracts
COPY services services
COPY docs docs
COPY deploy deploy
RUN python -m compileall -q contracts services deploy
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
