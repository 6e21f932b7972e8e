"""An S3 server (moto's) in a process of its own, with the bucket ``files``: what a suite's services keep their files in."""

import subprocess
import sys
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from deploy.rabbitmq import free_port
from tests.support.services.suite import wait_until

BUCKET = "files"


class ObjectStore:
    """Its files are in its memory: stopped, they are gone. ``settings(port)`` is what a service needs to reach it."""

    def __init__(self, log: Path) -> None:
        self.port = free_port()
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_until(self._made, what="the bucket")

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def settings(self, port: int) -> dict[str, str]:
        return {
            "BLOB_URL": f"s3://{BUCKET}/countersign",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "for-tests",
            "AWS_SECRET_ACCESS_KEY": "for-tests",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def _made(self) -> bool:
        client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id="for-tests",
            aws_secret_access_key="for-tests",
        )
        try:
            client.create_bucket(Bucket=BUCKET)
        except (BotoCoreError, ClientError):
            return False
        finally:
            client.close()
        return True
