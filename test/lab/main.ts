/**
 * `npm run lab -- NAME [OPTIONS]`: runs an experiment: a measurement, or a test that is too long or needs too much for
 * `npm test`. Without a name it lists them.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { reportError } from '../../scripts/command-line.ts'
import { CASES } from './cases.ts'
import { closeAll, root } from './experiment.ts'

/** The names, with a line each. */
function list(): string {
  const width = Math.max(...CASES.map(({ name }) => name.length)) + 3
  const lines = CASES.map(
    ({ name, what, needs }) => `  ${(needs === 'recordings' ? `${name} *` : name).padEnd(width)}${what}`,
  )
  return [
    'Usage: npm run lab -- NAME [OPTIONS]',
    '',
    ...lines,
    '',
    'NAME --help prints the options. Those marked * need recordings that are not part of the project.\n',
  ].join('\n')
}

const [, , name, ...words] = process.argv
const found = CASES.find((each) => each.name === name)
if (found === undefined) {
  const isAsked = name === undefined || name === '--help' || name === '-h'
  process[isAsked ? 'stdout' : 'stderr'].write(isAsked ? list() : `There is no ${name}.\n\n${list()}`)
  process.exit(isAsked ? 0 : 2)
}
const isHelp = words.some((word) => word === '--help' || word === '-h')
if (found.needs === 'build' && !isHelp) {
  const { status } = spawnSync(process.execPath, [join(root, 'scripts/bootstrap.mjs'), '--build'], { stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}
// The experiment reads its options as if it had been started itself.
process.argv.splice(1, 2, found.name)
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void closeAll().finally(() => process.exit(1)))
await found.run().catch(reportError)
await closeAll()
// Do not wait for handles that an experiment left open, such as a connection pool.
process.exit()
