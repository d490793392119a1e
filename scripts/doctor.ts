/**
 * `npm run doctor -- https://gate.example`: finds reasons why an indexer would not list a service or a buyer could not
 * pay it. Exits with 1 if there is a fault, with 2 if nothing answers. `--json` prints JSON. From behind the proxy:
 * `npm run doctor -- http://127.0.0.1:4021 --as https://gate.example`. With OPERATOR_TOKEN in the environment it also reports
 * the alarms that are raised.
 */
import { type Diagnosis, diagnose } from './doctor/diagnose.ts'
import { readFlags } from './flags.ts'
import { withCommands } from '../gateway/config/project-root.ts'

const USAGE = withCommands(
  'Usage: npm run doctor -- https://gate.example [--as <the address that buyers use>] [--json]',
)

function report({ baseUrl, looked, findings }: Diagnosis): string {
  const { routes, documents, tools, links } = looked
  const sorted = [...findings].sort((one, other) => Number(other.isFault) - Number(one.isFault))
  const lines = sorted.map(
    ({ isFault, where, rule, problem, fix }) =>
      `${isFault ? 'FAULT ' : 'advice'} ${where}: ${problem} [${rule}]\n       ${fix}`,
  )
  const faults = findings.filter(({ isFault }) => isFault).length
  lines.push(
    `${baseUrl}: ${routes} priced routes, ${documents} documents, ${tools} tools and ${links} links checked; ` +
      (faults === 0 ? 'no fault.' : `${faults} ${faults === 1 ? 'fault' : 'faults'}.`),
  )
  return lines.join('\n')
}

const isAddress = (text: string | undefined): text is string =>
  text !== undefined && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)

try {
  const { values, positionals } = readFlags(USAGE, {
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false }, as: { type: 'string' } },
  })
  const [address] = positionals
  const { as = address } = values
  if (address === undefined) throw new Error(USAGE)
  if (!isAddress(address) || !isAddress(as))
    throw new Error(`${isAddress(address) ? as : address} is not an address such as https://gate.example.\n\n${USAGE}`)
  const diagnosis = await diagnose(address, as, process.env['OPERATOR_TOKEN']?.trim() || null)
  const isHealthy = diagnosis.findings.every(({ isFault }) => !isFault)
  process.stdout.write(
    `${values.json ? JSON.stringify({ ok: isHealthy, ...diagnosis }, null, 2) : report(diagnosis)}\n`,
  )
  process.exitCode = isHealthy ? 0 : 1
} catch (error) {
  const cause = (error as Error).cause
  const why = cause instanceof Error ? ` (${cause.message})` : ''
  process.stderr.write(`${(error as Error).message}${why}\n`)
  process.exitCode = 2
}
