"""What operators deploy with: manifests, compose file and images say what the code expects, and nothing that it does not know."""

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pika
import pytest
import sqlalchemy as sa
import yaml
from pika.exceptions import ProbableAuthenticationError

from contracts.runtime.monitoring import build
from contracts.runtime.settings import FILE, ServiceSettings
from deploy.rabbitmq import PrivateBroker
from deploy.release.make_notice import dockerfile_of
from deploy.services import DEFINITIONS, SERVICES
from services.gateway.settings import Settings as GatewaySettings
from tests.support.judges.operations.kubectl import OVERLAYS, objects_of, of_kind

ROOT = Path(__file__).resolve().parents[4]
PROCESSES = ("serve", "background")
FOR_THE_IMAGE = {
    "HOST",
    "PORT",
    "HEALTH_HOST",
    "HEALTH_PORT",
    "PYTHONUNBUFFERED",
    "XDG_CACHE_HOME",
    "COUNTERSIGN_REVISION",
    "PATH",
    "LANG",
}
PARTS = ("containers", "initContainers", "volumes", "topologySpreadConstraints")
"""Of a pod's specification, what differs from service to service."""
HEALTH_PORT, HTTP_PORT = 9000, 8000


def settings_of(service: str) -> type[ServiceSettings]:
    settings: type[ServiceSettings] = importlib.import_module(f"services.{service}.settings").Settings
    return settings


def names_of(service: str, *, required: bool = False) -> set[str]:
    """The environment variables that the service reads."""
    fields = settings_of(service).model_fields
    return {str(f.validation_alias or name).upper() for name, f in fields.items() if f.is_required() or not required}


def made_secrets(kind: str) -> str:
    program = [sys.executable, str(ROOT / "deploy/make_secrets.py"), kind]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module", params=OVERLAYS)
def objects(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return objects_of(request.param)


def workloads(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """The pod templates of the services, by service and process."""
    found = of_kind(objects, "Deployment")
    return {(s, p): found[f"{s}-{p}"]["spec"]["template"]["spec"] for s in SERVICES for p in PROCESSES}


def test_every_service_has_its_processes_and_nothing_else_runs(objects: list[dict[str, Any]]) -> None:
    assert set(of_kind(objects, "Deployment")) == {f"{s}-{p}" for s in SERVICES for p in PROCESSES}
    for (service, process), pod in workloads(objects).items():
        (migrate,), (main,) = pod["initContainers"], pod["containers"]
        assert (migrate["args"], main["args"]) == (["migrate"], [process])
        assert migrate["image"] == main["image"] == f"countersign/{service}:{build.version()}"


def test_services_differ_only_in_what_is_theirs(objects: list[dict[str, Any]]) -> None:
    theirs = {"name", "image", "args", "env", "envFrom", "ports", "resources", "volumeMounts", "lifecycle"}
    plain = []
    for pod in workloads(objects).values():
        rest = {key: value for key, value in pod.items() if key not in PARTS}
        kept = [{k: v for k, v in one.items() if k not in theirs} for one in pod["containers"] + pod["initContainers"]]
        plain.append(json.dumps([rest, kept], sort_keys=True))
    assert len(set(plain)) == 1


def test_nothing_runs_with_rights_it_does_not_need(objects: list[dict[str, Any]]) -> None:
    for (service, _), pod in workloads(objects).items():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"] + pod["initContainers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            secrets = {one["secretRef"]["name"] for one in container["envFrom"] if "secretRef" in one}
            mounted = {one["name"] for one in container["volumeMounts"]}
            for volume in pod["volumes"]:
                sources = volume.get("projected", {}).get("sources", ()) if volume["name"] in mounted else ()
                secrets |= {one["secret"]["name"] for one in sources}
            assert secrets == {"countersign", f"countersign-{service}"}, "each service sees its own secrets only"
            assert "memory" in container["resources"]["limits"]
            assert "memory" in container["resources"]["requests"]


def test_probes_ask_what_is_served(objects: list[dict[str, Any]]) -> None:
    paths = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for (service, process), pod in workloads(objects).items():
        (main,) = pod["containers"]
        ports = {one["name"]: one["containerPort"] for one in main["ports"]}
        http = {"http": HTTP_PORT} if (service, process) == ("gateway", "serve") else {}
        assert ports == {"health": HEALTH_PORT, **http}
        assert {probe: main[probe]["httpGet"] for probe in paths} == {
            probe: {"path": path, "port": "health"} for probe, path in paths.items()
        }
        assert pod["terminationGracePeriodSeconds"] > settings_of(service).model_fields["drain_seconds"].default


def test_each_service_has_a_user_of_the_broker_and_a_role_of_the_database_for_itself(composed: dict[str, Any]) -> None:
    """In both forms for trying out, and no process has another's."""
    secrets = secrets_of("try-out")
    for service in SERVICES:
        given = secrets[f"countersign-{service}"]
        assert_own(service, given["AMQP_URL"], given[f"{service.upper()}_DATABASE_URL"])
        for process in ("", "-background", "-migrate"):
            given = composed["services"][f"{service}{process}"]["environment"]
            assert_own(service, given["AMQP_URL"], given[f"{service.upper()}_DATABASE_URL"])
            assert not [
                name for name in given if name.endswith("_DATABASE_URL") and not name.startswith(service.upper())
            ]
    assert "AMQP_URL" not in secrets["countersign"]
    passwords = [secrets[f"countersign-{service}"]["AMQP_URL"] for service in SERVICES]
    assert len({sa.make_url(one).password for one in passwords}) == len(SERVICES)


def assert_own(service: str, amqp_url: str, database_url: str) -> None:
    broker, database = sa.make_url(amqp_url), sa.make_url(database_url)
    assert (broker.username, broker.host) == (f"countersign-{service}", "rabbitmq")
    assert (database.username, database.host, database.database) == (service, "postgres", service)


def test_broker_and_database_are_given_what_the_services_log_in_with(composed: dict[str, Any], workspace: Path) -> None:
    """Both forms: the broker imports users with these passwords, and what each may do; the database's script sets them."""
    objects = objects_of("try-out")
    secrets = secrets_of("try-out")
    found = of_kind(objects, "StatefulSet")["rabbitmq"]["spec"]["template"]["spec"]
    volumes = {one["name"]: one for one in found["volumes"]}
    sources = {kind: one for source in volumes["definitions"]["projected"]["sources"] for kind, one in source.items()}
    assert sources["secret"]["items"] == [{"key": "users.json", "path": "0-users.json"}]
    maps = of_kind(objects, "ConfigMap")
    assert json.loads(maps[sources["configMap"]["name"]]["data"]["definitions.json"]) == json.loads(
        DEFINITIONS.read_text()
    )
    (configuration,) = maps[volumes["configuration"]["configMap"]["name"]]["data"].values()
    mounts = {one["name"]: one["mountPath"] for one in found["containers"][0]["volumeMounts"]}
    assert f"load_definitions = {mounts['definitions']}\n" in configuration
    for service in SERVICES:
        password = sa.make_url(secrets[f"countersign-{service}"][f"{service.upper()}_DATABASE_URL"]).password
        assert secrets["countersign-postgres"][f"{service.upper()}_POSTGRES_PASSWORD"] == password
    assert "countersign" not in {
        one.get("POSTGRES_USER") for name, one in secrets.items() if name != "countersign-postgres"
    }

    given = composed["services"]["rabbitmq"]
    assert composed["secrets"] == {"rabbitmq-users": {"environment": "RABBITMQ_USERS"}}
    assert given["secrets"] == [{"source": "rabbitmq-users", "target": "/etc/rabbitmq/definitions/0-users.json"}]
    mounted = dict(one.split(":")[:2] for one in given["volumes"])
    folder = "./kubernetes/components/broker-and-database"
    assert mounted[f"{folder}/definitions.json"] == "/etc/rabbitmq/definitions/1-definitions.json"
    assert mounted[f"{folder}/definitions.conf"].startswith("/etc/rabbitmq/conf.d/")
    for service in SERVICES:
        variable = f"{service.upper()}_POSTGRES_PASSWORD"
        url = composed["services"][service]["environment"][f"{service.upper()}_DATABASE_URL"]
        assert composed["services"]["postgres"]["environment"][variable] == sa.make_url(url).password


@pytest.mark.parametrize("form", ["compose", "kubernetes"])
def test_a_broker_lets_in_whom_the_secrets_were_made_for(form: str, tmp_path: Path) -> None:
    """RabbitMQ itself reads the users with their hashes."""
    if form == "compose":
        lines = dict(line.split("=", 1) for line in made_secrets("compose").splitlines())
        users = json.loads(lines["RABBITMQ_USERS"].strip("'"))
        operator = lines["RABBITMQ_PASSWORD"]
        passwords = {service: lines[f"{service.upper()}_RABBITMQ_PASSWORD"] for service in SERVICES}
    else:
        secrets = secrets_of("try-out")
        users = json.loads(secrets["countersign-rabbitmq"]["users.json"])
        operator = str(sa.make_url(secrets["countersign-rabbitmq"]["OPERATOR_AMQP_URL"]).password)
        passwords = {s: str(sa.make_url(secrets[f"countersign-{s}"]["AMQP_URL"]).password) for s in SERVICES}
    node = PrivateBroker(tmp_path / "rabbitmq", operator, (users, json.loads(DEFINITIONS.read_text())))
    node.start()
    try:
        urls = [node.amqp_url, *(node.url_of(f"countersign-{service}", passwords[service]) for service in SERVICES)]
        for url in urls:
            pika.BlockingConnection(pika.URLParameters(url)).close()
        with pytest.raises(ProbableAuthenticationError):
            pika.BlockingConnection(pika.URLParameters(node.url_of("countersign-gateway", passwords["webhooks"])))
    finally:
        node.stop()


@pytest.mark.parametrize("form", ["compose", "kubernetes"])
def test_roles_can_be_made_anew_without_the_other_secrets(form: str) -> None:
    made = made_secrets(f"{form}-roles")
    if form == "compose":
        names = {line.split("=", 1)[0] for line in made.splitlines()}
        own = {f"{service.upper()}_{what}_PASSWORD" for service in SERVICES for what in ("RABBITMQ", "POSTGRES")}
        assert names == own | {"RABBITMQ_PASSWORD", "RABBITMQ_USERS"}
    else:
        keys = {one["metadata"]["name"]: set(one["stringData"]) for one in json.loads(made)["items"]}
        assert keys["countersign-rabbitmq"] == {"users.json", "OPERATOR_AMQP_URL"}
        assert keys["countersign-postgres"] == {f"{service.upper()}_POSTGRES_PASSWORD" for service in SERVICES}
        for service in SERVICES:
            assert keys[f"countersign-{service}"] == {"AMQP_URL", f"{service.upper()}_DATABASE_URL"}


def secrets_of(overlay: str) -> dict[str, dict[str, str]]:
    """What the secrets hold: for trying out what `make_secrets.py` makes, else what the runbook's table demands."""
    if overlay == "try-out":
        return {one["metadata"]["name"]: one["stringData"] for one in json.loads(made_secrets("kubernetes"))["items"]}
    rows = re.findall(r"^\| `(countersign\S*)` \| (.*) \|$", (ROOT / "deploy/RUNBOOK.md").read_text(), re.MULTILINE)
    keys = {name: re.findall(r"`([A-Z<][A-Z0-9_<>]+)`", text) for name, text in rows}
    found = {"countersign": keys["countersign"]}
    for service in SERVICES:
        own = keys["countersign-<service>"] + keys.get(f"countersign-{service}", [])
        found[f"countersign-{service}"] = [key.replace("<SERVICE>", service.upper()) for key in own]
    special = {
        "SMS_URL": "https://sms.example.com/send",
        "SMS_FORMAT": "twilio",
        "IDENTITY_PROVIDER_URL": "https://login.example.com",
    }
    return {
        name: {key: special.get(key, f"smtp://{name}.example.com:587") for key in keys} for name, keys in found.items()
    }


def environment(container: dict[str, Any], objects: list[dict[str, Any]], overlay: str) -> dict[str, str]:
    """What the container's process sees in its environment."""
    seen: dict[str, str] = {}
    secrets = secrets_of(overlay)
    for source in container["envFrom"]:
        if "secretRef" in source:
            seen |= secrets[source["secretRef"]["name"]]
        else:
            seen |= of_kind(objects, "ConfigMap")[source["configMapRef"]["name"]]["data"]
    return seen | {one["name"]: one["value"] for one in container.get("env", ())}


def common(objects: list[dict[str, Any]]) -> set[str]:
    """What the ConfigMap of all services says to one of them at least."""
    (values,) = [
        one["data"]
        for name, one in of_kind(objects, "ConfigMap").items()
        if re.fullmatch(r"countersign-[0-9a-z]{10}", name)
    ]
    return {name for name in values if any(name in names_of(service) for service in SERVICES)}


def secret_files(pod: dict[str, Any], container: dict[str, Any], overlay: str) -> dict[str, str]:
    """What is in the files that the container's secrets are mounted as, by path."""
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    secrets = secrets_of(overlay)
    return {
        f"{mounts[volume['name']]}/{key}": value
        for volume in pod["volumes"]
        if volume["name"] in mounts
        for source in volume.get("projected", {}).get("sources", ())
        for key, value in secrets[source["secret"]["name"]].items()
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_every_container_starts_with_its_environment(
    overlay: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The settings themselves are asked, those of `migrate` too. Nothing is given that nobody reads."""
    objects = objects_of(overlay)
    for (service, process), pod in workloads(objects).items():
        for container in pod["initContainers"] + pod["containers"]:
            given = environment(container, objects, overlay)
            for number, (path, value) in enumerate(secret_files(pod, container, overlay).items()):
                (tmp_path / str(number)).write_text(f"{value}\n")
                given = {name: str(tmp_path / str(number)) if one == path else one for name, one in given.items()}
            own = set(given) - {name for name in given if name.startswith("AWS_")}  # boto3 reads these
            in_files = {f"{name}{FILE}": name for name in settings_of(service).secrets().values()}
            assert {in_files.get(name, name) for name in own} <= names_of(service) | common(objects), (service, process)
            with monkeypatch.context() as patch:
                for name in set(os.environ) & names_of(service):
                    patch.delenv(name)
                for name, value in given.items():
                    patch.setenv(name, value)
                settings = settings_of(service).from_environment()
        kept = {settings.blob_url.removeprefix("file://")} if settings.blob_url.startswith("file:") else set()
        assert kept <= {one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}, (service, process)


def test_nothing_runs_as_root(objects: list[dict[str, Any]]) -> None:
    """The broker and the database for trying out neither."""
    for kind in ("Deployment", "StatefulSet"):
        for name, one in of_kind(objects, kind).items():
            pod = one["spec"]["template"]["spec"]
            assert pod["securityContext"]["runAsNonRoot"], name
            assert pod["securityContext"]["runAsUser"] > 0, name
            for container in pod["containers"]:
                assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}, name


def test_nobody_waits_in_vain_for_a_gateway_that_is_going(objects: list[dict[str, Any]]) -> None:
    """Requests come until the service has forgotten the pod; those under way have their time after that."""
    pod = workloads(objects)["gateway", "serve"]
    pause, seconds = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    drain = settings_of("gateway").model_fields["drain_seconds"].default
    assert pause == "sleep"
    assert 0 < int(seconds) < pod["terminationGracePeriodSeconds"] - drain


def test_an_ingress_is_believed_whom_it_speaks_for(objects: list[dict[str, Any]]) -> None:
    (gateway,) = workloads(objects)["gateway", "serve"]["containers"]
    given = {one["name"] for one in gateway.get("env", ())}
    assert ("TRUSTED_PROXIES" in given) == bool(of_kind(objects, "Ingress"))


def test_the_database_for_trying_out_takes_every_connection(composed: dict[str, Any]) -> None:
    (postgres,) = of_kind(objects_of("try-out"), "StatefulSet")["postgres"]["spec"]["template"]["spec"]["containers"]
    needed = sum(2 * settings_of(s).model_fields["database_pool_size"].default for s in SERVICES for _ in PROCESSES)
    for command in (postgres["args"], composed["services"]["postgres"]["command"]):
        assert int(command[-1].removeprefix("max_connections=")) > needed


def test_volumes_that_are_mounted_are_there(objects: list[dict[str, Any]]) -> None:
    claims = set(of_kind(objects, "PersistentVolumeClaim"))
    for pod in workloads(objects).values():
        volumes = {one["name"]: one for one in pod["volumes"]}
        for container in pod["containers"] + pod["initContainers"]:
            assert {one["name"] for one in container["volumeMounts"]} <= set(volumes)
        used = {one["persistentVolumeClaim"]["claimName"] for one in volumes.values() if "persistentVolumeClaim" in one}
        assert used <= claims


def test_labels_that_select_select_something(objects: list[dict[str, Any]]) -> None:
    pods = [
        one["spec"]["template"]["metadata"]["labels"]
        for kind in ("Deployment", "StatefulSet")
        for one in of_kind(objects, kind).values()
    ]
    selectors = [one["spec"]["selector"] for one in of_kind(objects, "Service").values()]
    for policy in of_kind(objects, "NetworkPolicy").values():
        selector = policy["spec"]["podSelector"]
        selectors.append(selector.get("matchLabels", {}))
        selectors += [{one["key"]: value} for one in selector.get("matchExpressions", ()) for value in one["values"]]
    selectors += [one["spec"]["selector"]["matchLabels"] for one in of_kind(objects, "PodDisruptionBudget").values()]
    assert selectors
    for selector in selectors:
        assert any(selector.items() <= labels.items() for labels in pods), selector
    for ingress in of_kind(objects, "Ingress").values():
        (path,) = ingress["spec"]["rules"][0]["http"]["paths"]
        assert path["backend"]["service"]["name"] in of_kind(objects, "Service")


def test_no_secret_is_in_a_manifest(objects: list[dict[str, Any]]) -> None:
    assert not of_kind(objects, "Secret")


@pytest.fixture(scope="module")
def composed() -> dict[str, Any]:
    """The compose file with its variables replaced, as `docker compose` would, from what `make_secrets.py` gives."""
    given = dict(line.split("=", 1) for line in made_secrets("compose").splitlines())

    def value(match: re.Match[str]) -> str:
        name, operator, default = match.groups()
        assert operator == ":-" or name in given, f"{name} is demanded and nobody makes it"
        return given.get(name, default)

    text = (ROOT / "deploy/compose.yaml").read_text()
    assert not re.search(r"(?i)password: +[^$\s]", text), "no secret has a default"
    content: dict[str, Any] = yaml.safe_load(re.sub(r"\$\{(\w+)(:[?-])([^}]*)\}", value, text))
    return content


@pytest.mark.parametrize("service", SERVICES)
def test_compose_runs_every_process_of_a_service(composed: dict[str, Any], service: str) -> None:
    parts = {name: composed["services"][f"{service}{name}"] for name in ("", "-background", "-migrate")}
    arguments = {"SERVICE": service, "REVISION": "unknown"}
    assert parts[""]["build"] == {"context": "..", "dockerfile": "services/Dockerfile", "args": arguments}
    assert [part.get("command") for part in parts.values()] == [None, ["background"], ["migrate"]]
    for part in parts.values():
        # Those of OpenTelemetry are its own.
        assert {name for name in part["environment"] if not name.startswith("OTEL_")} <= names_of(service)
        assert set(part["environment"]) >= names_of(service, required=True)
        assert part["read_only"]
        assert ("build" in part) != (part.get("pull_policy") == "never"), "ours or nobody's"
        assert part["cap_drop"] == ["ALL"]
        volumes = {one.split(":")[0] for one in part["volumes"]}
        assert volumes <= set(composed["volumes"])
    assert f":{HEALTH_PORT}/readyz" in parts[""]["healthcheck"]["test"][-1]
    assert parts[""]["depends_on"] == {f"{service}-migrate": {"condition": "service_completed_successfully"}}


def test_compose_publishes_the_gateway_on_this_machine_only(composed: dict[str, Any]) -> None:
    published = {name: one["ports"] for name, one in composed["services"].items() if "ports" in one}
    assert published == {"gateway": [f"127.0.0.1:{HTTP_PORT}:{HTTP_PORT}"]}
    settings = {k.lower(): v or "" for k, v in composed["services"]["gateway"]["environment"].items()}
    GatewaySettings.model_validate({**settings, "GATEWAY_DATABASE_URL": settings["gateway_database_url"]})


@pytest.mark.parametrize("service", SERVICES)
def test_images_are_locked_and_run_as_nobody(service: str) -> None:
    text = dockerfile_of(service)
    assert f"deploy/locks/{service}.txt" in text
    assert "RUN sh /build/packages.sh /build/lock.txt\n" in text
    assert "--require-hashes" in (ROOT / "deploy/release/image/packages.sh").read_text()
    assert text.count("\nUSER ") == text.count("\nUSER 10001:10001\n") == 1
    assert text.rindex("\nRUN ") < text.index("\nUSER ")
    said = dict(pair.split("=", 1) for line in re.findall(r"^ENV (.*)$", text, re.MULTILINE) for pair in line.split())
    assert set(said) <= FOR_THE_IMAGE
    assert said["HEALTH_PORT"] == str(HEALTH_PORT)
    assert (said["COUNTERSIGN_REVISION"], "ARG REVISION=unknown\n" in text) == ("${REVISION}", True)
    assert "org.opencontainers.image.revision=${REVISION}" in text
    assert re.findall("^ENTRYPOINT (.*)$", text, re.MULTILINE) == [f'["python", "-m", "services.{service}"]']
    copied = {path for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for path in line.split()}
    assert set(re.findall(r"^COPY --from=(\S+) (\S+) ", text, re.MULTILINE)) == {
        ("small", "/"),
        ("trimmed", "/"),
        ("packages", "/venv"),
    }
    sources = {"contracts", "services/__init__.py", f"services/{service}"}
    sources |= {"docs"} if service == "gateway" else set()  # its guides: docs/*.md, as .dockerignore says
    programs = {path for path in copied if path.startswith("deploy/release/image/")}
    assert copied - programs == {f"deploy/locks/{service}.txt", "LICENSE", "NOTICE", "pyproject.toml", *sources}
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line[1:].removesuffix("/*.md") for line in ignored if line.startswith("!")}
    assert all(any(path == one or path.startswith(f"{one}/") for one in let_in) for path in copied)
    assert all((ROOT / path).exists() for path in copied)
