"""Salt's exceptions."""


class SaltException(Exception):
    def __init__(self, message=""):
        if not isinstance(message, str):
            message = str(message)
        super().__init__(message)
        self.message = self.strerror = message

    def pack(self):
        return {"message": str(self), "args": self.args}


class CommandExecutionError(SaltException):
    def __init__(self, message="", info=None):
        self.error = message if isinstance(message, str) else str(message)
        self.info = info
        text = self.error
        if info:
            text = "{}\n\nAdditional info follows:\n\n{}".format(text.rstrip("."), info)
        super().__init__(text)


class CommandNotFoundError(SaltException):
    pass


class SaltInvocationError(SaltException, TypeError):
    pass


class SaltRenderError(SaltException):
    def __init__(self, message, line_num=None, buf="", marker="    <======================", trace=None):
        self.error = message
        self.line_num = line_num
        self.buffer = buf
        super().__init__(message)


class TimedProcTimeoutError(SaltException):
    pass


class TimeoutError(SaltException):  # noqa: A001
    pass


class MinionError(SaltException):
    pass


class FileserverConfigError(SaltException):
    pass


class FileLockError(SaltException):
    def __init__(self, message="", time_start=None, *args, **kwargs):
        super().__init__(message)
        self.time_start = time_start


class LoaderError(SaltException):
    pass


class SaltReqTimeoutError(SaltException):
    pass


class SaltClientError(SaltException):
    pass


class SaltMasterError(SaltException):
    pass


class SaltMasterUnresolvableError(SaltException):
    pass


class SaltSyndicMasterError(SaltException):
    pass


class SaltRunnerError(SaltException):
    pass


class SaltWheelError(SaltException):
    pass


class SaltConfigurationError(SaltException):
    pass


class SaltDaemonNotRunning(SaltException):
    pass


class SaltSystemExit(SystemExit):
    def __init__(self, code=0, msg=None):
        super().__init__(code)
        self.message = msg


class SaltCacheError(SaltException):
    pass


class SaltDeserializationError(SaltException):
    pass


class SaltNoMinionsFound(SaltException):
    pass


class SaltCloudException(SaltException):
    pass


class SaltCloudSystemExit(SaltCloudException):
    def __init__(self, message, exit_code=1):
        super().__init__(message)
        self.exit_code = exit_code


class SaltCloudConfigError(SaltCloudException):
    pass


class SaltCloudNotFound(SaltCloudException):
    pass


class SaltCloudExecutionTimeout(SaltCloudException):
    pass


class SaltCloudExecutionFailure(SaltCloudException):
    pass


class AuthenticationError(SaltException):
    pass


class AuthorizationError(SaltException):
    pass


class EauthAuthenticationError(SaltException):
    pass


class TokenAuthenticationError(SaltException):
    pass


class InvalidConfigError(CommandExecutionError):
    pass


class ArgumentValueError(CommandExecutionError):
    pass


class CheckError(CommandExecutionError):
    pass


class PkgParseError(SaltException):
    pass


class MissingSmb(SaltException):
    pass


class SaltValidationError(SaltException):
    pass


class GitLockError(SaltException):
    pass


class GitRemoteError(SaltException):
    pass


class NotImplemented(SaltException):  # noqa: A001
    pass


class PublishError(SaltException):
    pass


class VMwareSaltError(CommandExecutionError):
    pass


def get_error_message(error):
    return error.args[0] if error.args else ""
