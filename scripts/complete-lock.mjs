// Adds a bare entry to the lock file for every platform package of an optional dependency that it does not name. Some
// registries lack some of these packages, and npm 11 and 12 refuse `npm ci` if the lock file does not name them.
// Run it after every change of the lock file: node scripts/complete-lock.mjs
import { readFileSync, writeFileSync } from 'node:fs'

const SYSTEMS = ['darwin', 'linux', 'win32', 'android', 'freebsd', 'netbsd', 'openbsd', 'sunos', 'aix', 'openharmony']
const PROCESSORS = {
  amd64: 'x64',
  x64: 'x64',
  arm64: 'arm64',
  ia32: 'ia32',
  ppc64: 'ppc64',
  riscv64: 'riscv64',
  s390x: 's390x',
  arm: 'arm',
}

const lock = JSON.parse(readFileSync('package-lock.json', 'utf8'))
const packages = lock.packages
let added = 0
for (const [path, entry] of Object.entries(packages)) {
  for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
    const top = `node_modules/${name}`
    if (packages[`${path}/node_modules/${name}`] || packages[top]) continue
    const os = SYSTEMS.find((system) => name.includes(system))
    if (!os) continue
    const parts = name.split(/[-/]/)
    const word = Object.keys(PROCESSORS).find((processor) => parts.includes(processor)) ?? 'arm'
    packages[top] = {
      version: range.replace(/^[~^]/, ''),
      cpu: [PROCESSORS[word]],
      ...(entry.dev ? { dev: true } : {}),
      optional: true,
      os: [os],
    }
    added += 1
  }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync('package-lock.json', `${JSON.stringify(lock, null, 2)}\n`)
console.log(`${added} entries added`)
