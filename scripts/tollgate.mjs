#!/usr/bin/env node
/**
 * The command `tollgate`. Runs from the build, which starts in half the time, or from the sources if they have changed since
 * it was built. It never builds: a gateway that runs may still read the files of its build.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isBuilt, root } from './build-state.mjs'
import { buildAddon, hasAddon } from './sqlite-addon.mjs'

const [, , name] = process.argv
// What the environment sets itself takes precedence over the file.
if (existsSync('.env')) process.loadEnvFile()
if (!existsSync(join(root, 'gateway')) && !hasAddon()) {
  const say = (message) => process.stderr.write(`[install] ${message}\n`)
  buildAddon(say, (message) => {
    process.stderr.write(`${message}\n`)
    process.exit(1)
  })
}
// `npm start` has built what it starts, and `npm run dev` starts the sources.
const runsBuild = name === 'start' || (name !== 'dev' && isBuilt()) || !existsSync(join(root, 'gateway'))
if (!runsBuild) {
  const loader = pathToFileURL(join(root, 'gateway', 'from-source.mjs')).href
  await import(loader)
  // The processes that the gateway starts run from the sources too.
  process.execArgv.push('--import', loader)
}
const program = runsBuild ? join(root, 'dist', 'scripts', 'program.js') : join(root, 'scripts', 'program.ts')
await import(pathToFileURL(program).href)
