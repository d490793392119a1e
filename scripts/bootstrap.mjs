// Installs node_modules and the native SQLite addon. With --build it also builds the gateway (scripts/build.ts). Runs before
// `npm start`, `npm test` and the scripts that a newcomer may run first, has no dependencies, and takes milliseconds if what
// the lock file names is installed and no source has changed since the last build.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { hashOfSources, isBuilt, root } from './build-state.mjs'
import { addonLoads, buildAddon, hasAddon } from './sqlite-addon.mjs'

process.chdir(root)
const began = performance.now()
const say = (message) =>
  process.stderr.write(`[install ${((performance.now() - began) / 1000).toFixed(1)}s] ${message}\n`)
const stop = (message) => {
  process.stderr.write(`${message}\n`)
  process.exit(1)
}

const [major, minor] = process.versions.node.split('.').map(Number)
// As in "engines" of package.json: the versions with long-term support whose require() loads ES modules.
if (!((major === 20 && minor >= 19) || (major === 22 && minor >= 13) || major >= 24))
  stop(`Node ${process.version} cannot run this: install Node 20.19+, 22.13+ or 24+.`)

const stampFile = join('node_modules', '.tollgate.json')
const wanted = createHash('sha256').update(fs.readFileSync('package-lock.json')).digest('hex')
const readJson = (file) => {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch {
    return null
  }
}
const installed = () => readJson(stampFile)?.lock === wanted || installedByNpm()
// The stamp is written last, after the addon has loaded, so that an interrupted install is repeated.
const isInstalled = installed() && hasAddon()
const builds = process.argv.includes('--build')
if (isInstalled && (!builds || isBuilt())) process.exit(0)

lockInstall()
if (!isInstalled) {
  if (!installed() || !fs.existsSync('node_modules/sqlite3')) installPackages()
  if (!addonLoads()) buildAddon(say, stop)
  fs.writeFileSync(stampFile, JSON.stringify({ lock: wanted }))
  say('ready')
}
if (builds && !isBuilt()) build()

function build() {
  const sources = hashOfSources()
  // Removed first and written last, so that an interrupted build is repeated.
  fs.rmSync(join('dist', 'build.json'), { force: true })
  const script = join('scripts', 'build.ts')
  const { status } = spawnSync(process.execPath, ['--import', 'tsx/esm', script], { stdio: ['ignore', 2, 2] })
  if (status !== 0) stop('The gateway could not be built: correct the error above.')
  fs.writeFileSync(join('dist', 'build.json'), JSON.stringify({ sources }))
}

/**
 * True if `npm ci` or `npm install` was run by hand: npm then lists what it has installed in a lock file of its own.
 * Packages for other platforms are optional and may be missing there.
 */
function installedByNpm() {
  const present = readJson(join('node_modules', '.package-lock.json'))?.packages
  if (!present) return false
  const { packages } = readJson('package-lock.json')
  return Object.entries(packages).every(
    ([path, { version, optional }]) => path === '' || (present[path] ? present[path].version === version : optional),
  )
}

/** Allows one install or build at a time, because `npm start` and `npm test` may run together on a fresh clone. */
function lockInstall() {
  const lock = '.install.lock'
  for (let tries = 0; ; tries++) {
    try {
      fs.writeFileSync(lock, `${process.pid} ${startOf(process.pid)}`, { flag: 'wx' })
      break
    } catch (error) {
      if (error.code !== 'EEXIST')
        stop(`This folder must be writable, to install packages or to build the gateway: ${error.message}`)
      if (!isHolderAlive(lock)) fs.rmSync(lock, { force: true })
      if (tries === 0) say('another install or build is running; waiting for it')
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
    }
  }
  process.on('exit', () => fs.rmSync(lock, { force: true }))
}

function isHolderAlive(lock) {
  try {
    const text = fs.readFileSync(lock, 'utf8')
    // The holder is between creating and writing the file, or was killed there.
    if (text === '') return Date.now() - fs.statSync(lock).mtimeMs < 2_000
    const [pid, start = ''] = text.split(' ')
    process.kill(Number(pid), 0)
    return startOf(pid) === start
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** When a process was started, if the system tells: a container that is started again gives out the same pids. */
function startOf(pid) {
  try {
    const status = fs.readFileSync(`/proc/${pid}/stat`, 'utf8')
    return status.slice(status.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return ''
  }
}

function installPackages() {
  say('installing packages from the lock file')
  const cli = process.env.npm_execpath
  const [command, first] =
    cli && cli.endsWith('npm-cli.js')
      ? [process.execPath, [cli]]
      : [process.platform === 'win32' ? 'npm.cmd' : 'npm', []]
  // npm 12 blocks install scripts by default. Turn them off in every version, and run the one that matters below.
  const args = ['ci', '--include=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
  const result = spawnSync(command, [...first, ...args, '--loglevel=error'], { stdio: ['ignore', 2, 2] })
  if (result.status !== 0) stop('npm ci failed. Is the package registry reachable, and is the disk not full?')
}
