/**
 * The environment variables. A variable of a process can be read by all of its code, and stays in /proc/PID/environ even
 * if it is deleted. So the process that runs plugins is started without ours, and gets them as a message.
 */

import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'

/** Variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Variables that Node, its libraries and the system read themselves. The rest configures the gateway or is a secret. */
const OF_SYSTEM =
  /^(PATH|HOME|USER|LOGNAME|SHELL|PWD|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|TMPDIR|TEMP|TMP|XDG_\w+|NODE_\w+|UV_\w+|SSL_CERT_\w+|LD_\w+|DYLD_\w+|OTEL_\w+|PG(HOST|PORT|USER|DATABASE|OPTIONS|APPNAME|TZ|PASSFILE|CONNECT_TIMEOUT|SSL(MODE|CERT|KEY|ROOTCERT))|SystemRoot|SystemDrive|windir|ComSpec|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE)$/i

/** True for a variable that Node, its libraries or the system read. */
export const isOfSystem = (name: string): boolean => OF_SYSTEM.test(name)

/** The environment of this process. */
export function processEnvironment(): Environment {
  return process.env
}

/**
 * Returns the environment of this process, and removes all but the system's variables from it, so that other processes
 * cannot read them.
 */
export function takeEnvironment(): Environment {
  const environment = { ...process.env }
  for (const name of Object.keys(environment)) if (!isOfSystem(name)) delete process.env[name]
  try {
    eraseDeleted()
  } catch {
    // Not on Linux, or not allowed: what this process was started with can still be read.
  }
  return environment
}

/**
 * Erases the variables that were deleted from /proc/PID/environ, where all processes of this user could read them. It shows
 * the memory in which the kernel put them; deleting a variable removes only what points there.
 */
function eraseDeleted(): void {
  // The fields behind the name of the program (proc_pid_stat(5)): state is field 3, env_start 50 and env_end 51.
  const stat = readFileSync('/proc/self/stat', 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [start, end] = [Number(fields[47]), Number(fields[48])]
  const memory = openSync('/proc/self/mem', 'r+')
  try {
    const block = Buffer.alloc(end - start)
    readSync(memory, block, 0, block.length, start)
    let at = 0
    for (const variable of block.toString('latin1').split('\0')) {
      const [name = ''] = variable.split('=', 1)
      if (!isOfSystem(name)) writeSync(memory, Buffer.alloc(variable.length), 0, variable.length, start + at)
      at += variable.length + 1
    }
  } finally {
    closeSync(memory)
  }
}
