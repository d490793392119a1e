/** The file .env, whose variables a start adds to the environment, and what becomes of a change while the gateway runs. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import type { Environment } from './environment.ts'

/** The file of the folder in which the gateway was started. */
export const ENV_FILE = resolve('.env')

/** Reads the variables of the file; none if there is no file. */
function readEnvFile(): Environment {
  try {
    return parseEnv(readFileSync(ENV_FILE, 'utf8'))
  } catch {
    return {}
  }
}

/** The variables of an environment that come from the file. What the environment sets itself takes precedence. */
export function namesFromFile(environment: Environment): readonly string[] {
  return Object.entries(readEnvFile()).flatMap(([name, value]) => (environment[name] === value ? [name] : []))
}

interface FollowedParts {
  /** The variables with which the gateway was started. */
  readonly environment: Environment
  /** Those that came from the file. */
  readonly fromFile: readonly string[]
  /** Whether the gateway reads a variable at its start only. */
  readonly isSetting: (name: string) => boolean
  /** Called with each such variable that has changed in the file. */
  readonly onSetting: (name: string) => void
}

/**
 * Follows the file. Returns a function that gives the value of a variable as it is now. `reread` reads the file; the
 * settings that have changed in it are told, and all other variables have their new values from then on.
 */
export function followEnvFile({ environment, fromFile, isSetting, onSetting }: FollowedParts): FollowedFile {
  // Of settings a digest is kept: keys that the signer holds are among them, and plugins run in this process.
  const read = (): Environment =>
    Object.fromEntries(
      Object.entries(readEnvFile()).map(([name, value = '']) => [name, isSetting(name) ? digestOf(value) : value]),
    )
  const isOfFile = (name: string): boolean => fromFile.includes(name) || environment[name] === undefined
  let file = read()
  return {
    secret: (name) => (isOfFile(name) && !isSetting(name) ? file : environment)[name]?.trim() ?? null,
    reread() {
      const before = file
      file = read()
      for (const name of new Set([...Object.keys(before), ...Object.keys(file)]))
        if (isSetting(name) && isOfFile(name) && before[name] !== file[name]) onSetting(name)
    },
  }
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url')

export interface FollowedFile {
  /** Returns the value of a variable, or null if it is not set. */
  readonly secret: (name: string) => string | null
  readonly reread: () => void
}
