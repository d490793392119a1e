/**
 * The environment variables. A variable of a process can be read by all of its code, and stays in /proc/PID/environ even
 * if it is deleted. So the process that runs plugins is started without ours, and gets them as a message.
 */

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** What Node, its libraries and the system read themselves. The rest configures the gateway or is a secret. */
const OF_SYSTEM =
  /^(PATH|HOME|USER|LOGNAME|SHELL|PWD|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|TMPDIR|TEMP|TMP|XDG_\w+|NODE_\w+|UV_\w+|SSL_CERT_\w+|LD_\w+|DYLD_\w+|OTEL_\w+|SystemRoot|SystemDrive|windir|ComSpec|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE)$/i

/** The environment of this process. */
export function processEnvironment(): Environment {
  return process.env
}

/**
 * Returns the environment of this process, and removes all from it that the processes it starts must not inherit: only
 * variables of the system stay.
 */
export function takeEnvironment(): Environment {
  const environment = { ...process.env }
  for (const name of Object.keys(environment)) if (!OF_SYSTEM.test(name)) delete process.env[name]
  return environment
}
