"""Resources: what the tasks of a training are given, where that is not what the session says."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from sparknet.errors import SparkError
from sparknet.spark.cluster.background_job import is_classic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TaskResources:
    """A ResourceProfile of PySpark's for all jobs of a training; None is the session's own."""

    def __init__(self, session: SparkSession, profile: Any = None) -> None:
        self._session, self._profile = session, profile
        if profile is None:
            return
        from pyspark import __version__
        from pyspark.resource import ResourceProfile

        if not isinstance(profile, ResourceProfile):
            raise SparkError(f"resources must be a ResourceProfile of pyspark, not {profile!r}")
        rows = session.range(0)
        if "profile" not in inspect.signature(rows.mapInArrow).parameters:
            raise SparkError(
                f"resources= needs PySpark 4: in {__version__} a DataFrame has those of its session"
            )
        if is_classic(session):
            from py4j.protocol import Py4JJavaError

            java = profile._java_resource_profile or rows._build_java_profile(profile)
            try:
                self._manager.addResourceProfile(java)
            except Py4JJavaError as error:
                message = error.java_exception.getMessage()
                raise SparkError(
                    f"Spark refuses the resources of the training: {message}"
                ) from error
            self._profile = ResourceProfile(java)
            return
        from pyspark.errors import PySparkException

        # PySpark asks the session of the thread, and jobs have threads of their own.
        type(session)._set_default_and_active_session(session)
        try:
            _ = profile.id
        except PySparkException as error:
            message = str(error).strip().partition("\n")[0]
            raise SparkError(f"Spark refuses the resources of the training: {message}") from error

    @property
    def _manager(self) -> Any:
        return self._session.sparkContext._jsc.sc().resourceProfileManager()

    def mapped(self, rows: DataFrame, work: Any, schema: str, barrier: bool = False) -> DataFrame:
        """Return what ``work`` makes of the rows, in tasks with these resources."""
        if self._profile is None:
            return rows.mapInArrow(work, schema, barrier=barrier)
        return rows.mapInArrow(work, schema, barrier=barrier, profile=self._profile)

    def slots(self) -> int:
        """Return the number of tasks that can run at once, as Spark counts for a barrier stage."""
        java: Any = None if self._profile is None else self._profile._java_resource_profile
        profile = self._manager.defaultResourceProfile() if java is None else java
        return int(self._session.sparkContext._jsc.sc().maxNumConcurrentTasks(profile))
