// The native addon of SQLite. npm 12 runs no install scripts unless told to, so that a package may come without it. Has no
// dependencies: it runs before anything else can.
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { root } from './build-state.mjs'

const require = createRequire(join(root, 'package.json'))
const addon = () => join(dirname(require.resolve('sqlite3/package.json')), 'build', 'Release', 'node_sqlite3.node')

/** True if the addon is there. */
export const hasAddon = () => fs.existsSync(addon())

/** True if the addon is there and works here. */
export const addonLoads = () =>
  hasAddon() &&
  spawnSync(process.execPath, ['-e', `require(${JSON.stringify(addon())})`], { stdio: 'ignore' }).status === 0

/**
 * Restores the addon from the cache. Otherwise downloads the published binary or compiles it, and caches the result.
 *
 * @param say prints what takes its time
 * @param stop ends the process with what to do
 */
export function buildAddon(say, stop) {
  const folder = dirname(require.resolve('sqlite3/package.json'))
  const { version } = require('sqlite3/package.json')
  const libc = process.report?.getReport?.().header.glibcVersionRuntime ? 'glibc' : 'other'
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'tollgate')
  const cached = join(cache, `sqlite3-${version}-${process.platform}-${process.arch}-${libc}.node`)
  if (fs.existsSync(cached)) {
    fs.mkdirSync(dirname(addon()), { recursive: true })
    fs.copyFileSync(cached, addon())
    if (addonLoads()) return say('sqlite3 restored from the cache')
  }
  const env = { ...process.env }
  const prefix = dirname(dirname(process.execPath))
  // If this Node has its headers beside it, node-gyp needs no download and works offline.
  if (!env.npm_config_nodedir && fs.existsSync(join(prefix, 'include/node/node_api.h'))) env.npm_config_nodedir = prefix
  say('fetching the published sqlite3 binary')
  spawnSync(process.execPath, [require.resolve('prebuild-install/bin.js'), '-r', 'napi'], {
    cwd: folder,
    env,
    stdio: 'ignore',
  })
  if (!addonLoads()) {
    say('no published binary: compiling sqlite3 once, which takes a minute or two, or longer on a busy machine')
    const gyp = require.resolve('node-gyp/bin/node-gyp.js')
    const result = spawnSync(process.execPath, [gyp, 'rebuild', '--loglevel=error'], {
      cwd: folder,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    if (!addonLoads())
      stop(
        `${(result.stderr ?? '').split('\n').slice(-25).join('\n')}\nsqlite3 could not be built: install python3, make and a C++ compiler, then try again.`,
      )
  }
  fs.mkdirSync(cache, { recursive: true })
  fs.copyFileSync(addon(), `${cached}.tmp`)
  fs.renameSync(`${cached}.tmp`, cached)
}
