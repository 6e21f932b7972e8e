from pydantic import Field

from contracts.runtime.settings import ServiceSettings


class Settings(ServiceSettings):
    database_url: str = Field(validation_alias="SPECIMEN_DATABASE_URL", description="the specimen's database")
    schedule: str = Field(default="0.1,0.2", description="seconds between the attempts of a task")
    harm: str = Field(default="", description="how the background process is broken soon after its start: see harm.py")
    lease: float = Field(default=30.0, description="seconds that an attempt may take")
