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
            text = "{}{} Additional info follows:\n\n{}".format(
                text, "" if text.endswith((".", "!", "?")) else ".", _nested(info)
            )
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
        self.context = ""
        text = message
        if trace:
            text += "\n{}\n".format(trace)
        if line_num and buf:
            from salt.utils.stringutils import get_context

            self.context = get_context(buf, line_num, marker=marker)
            text += "; line {}\n\n{}".format(line_num, self.context)
        super().__init__(text)


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


class InvalidEntityError(CommandExecutionError):
    pass


class TemplateError(SaltException):
    pass


class SaltClientTimeout(SaltException):
    def __init__(self, message="", jid=None, *args, **kwargs):
        super().__init__(message)
        self.jid = jid


class MasterExit(SystemExit):
    pass


class TokenExpiredError(SaltException):
    pass


class UnsupportedAlgorithm(SaltException):
    pass


class InvalidKeyError(SaltException):
    pass


class LoggingRuntimeError(RuntimeError):
    pass


class CodePageError(CommandExecutionError):
    pass


class SaltCloudPasswordError(SaltCloudException):
    pass


class NxosError(SaltException):
    pass


class NxosCliError(NxosError):
    pass


class NxosClientError(NxosError):
    pass


class NxosRequestNotSupported(NxosError):
    pass


class VMwareSaltError(CommandExecutionError):
    pass


class VMwareRuntimeError(VMwareSaltError):
    pass


class VMwareConnectionError(VMwareSaltError):
    pass


class VMwareObjectRetrievalError(VMwareSaltError):
    pass


class VMwareObjectNotFoundError(VMwareSaltError):
    pass


class VMwareObjectExistsError(VMwareSaltError):
    pass


class VMwareMultipleObjectsError(VMwareObjectRetrievalError):
    pass


class VMwareNotFoundError(VMwareSaltError):
    pass


class VMwareApiError(VMwareSaltError):
    pass


class VMwareFileNotFoundError(VMwareApiError):
    pass


class VMwareSystemError(VMwareSaltError):
    pass


class VMwarePowerOnError(VMwareSaltError):
    pass


class VMwareVmRegisterError(VMwareSaltError):
    pass


class VMwareVmCreationError(VMwareSaltError):
    pass


def _nested(value, indent=0):
    """As the outputter `nested` writes it, without colours."""
    pad = " " * indent
    if isinstance(value, dict):
        lines = []
        for key, below in value.items():
            lines.append("{}{}:".format(pad, key))
            if isinstance(below, dict):
                lines.append("{}    ----------".format(pad))
            lines.append(_nested(below, indent + 4))
        return "\n".join(lines)
    if isinstance(value, (list, tuple)):
        lines = []
        for below in value:
            if isinstance(below, (dict, list, tuple)):
                lines.extend(["{}|_".format(pad) if isinstance(below, dict) else "{}-".format(pad)])
                lines.append(_nested(below, indent + 2))
            else:
                lines.append("{}- {}".format(pad, below))
        return "\n".join(lines)
    return "\n".join(pad + line for line in str(value).splitlines()) or pad


def get_error_message(error):
    return error.args[0] if error.args else ""
