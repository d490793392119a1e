/**
 * `npm run doctor -- https://gate.example`: why an indexer would not list this service, or a buyer not pay it. Exit 1
 * where anything is wrong, 2 where nothing answers. `--json` for machines. From inside, behind the proxy:
 * `npm run doctor -- http://127.0.0.1:4021 --as https://gate.example`.
 */
import { type Diagnosis, diagnose } from './doctor/diagnose.ts'
import { readFlags } from './command-line.ts'

const USAGE = 'Write: npm run doctor -- https://gate.example [--as <the address buyers use>] [--json]'

function told({ baseUrl, looked, findings }: Diagnosis): string {
  const { routes, documents, tools, links } = looked
  const sorted = [...findings].sort((one, other) => Number(other.isFault) - Number(one.isFault))
  const lines = sorted.map(
    ({ isFault, where, rule, problem, fix }) =>
      `${isFault ? 'FAULT ' : 'advice'} ${where}: ${problem} [${rule}]\n       ${fix}`,
  )
  const faults = findings.filter(({ isFault }) => isFault).length
  lines.push(
    `${baseUrl}: ${routes} priced routes, ${documents} documents, ${tools} tools and ${links} links looked at; ` +
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
  if (!isAddress(address) || !isAddress(as)) throw new Error(USAGE)
  const diagnosis = await diagnose(address, as)
  const isWell = diagnosis.findings.every(({ isFault }) => !isFault)
  process.stdout.write(`${values.json ? JSON.stringify({ ok: isWell, ...diagnosis }, null, 2) : told(diagnosis)}\n`)
  process.exitCode = isWell ? 0 : 1
} catch (error) {
  const cause = (error as Error).cause
  const why = cause instanceof Error ? ` (${cause.message})` : ''
  process.stderr.write(`${(error as Error).message}${why}\n`)
  process.exitCode = 2
}
