/** `tollgate mcp URL`: an MCP server on stdin and stdout that offers the tools of a service, and pays for them. */
import { statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { privateKeyToAccount } from 'viem/accounts'
import { dollars, type Limits } from '../gateway/client/budget.ts'
import { readFlags } from './flags.ts'
import { createBridge } from './mcp/bridge.ts'
import { PurchaseLog } from './mcp/purchase-log.ts'
import { PayError, readDollars, readKey } from './pay/arguments.ts'
import { findSandbox, isSandbox, type SandboxDescription } from './sandbox-wallet.ts'

const USAGE = `tollgate mcp [URL] [options]

An MCP server on stdin and stdout, for clients that start servers as programs. It offers the tools of an x402 service, pays for
their calls within limits, and asks before a payment above one, if the client can ask.

  URL                   the service, e.g. https://gate.example (default: the sandbox described in DATA_DIR/*/sandbox.json)
  --key @file           file with the private key of the payer (default: the sandbox's buyer)
  --max-per-call USD    highest price of a call (default: 0.10)
  --daily USD           most to spend in a day of UTC, at all services that share the log (default: 1)
  --daily-per-host USD  most to spend in a day at one service (default: no limit of its own)
  --log FOLDER          where purchases are written down (default: ~/.tollgate/purchases)

  In the settings of a client: {"command": "npx", "args": ["tollgate", "mcp", "https://gate.example", "--key", "@/path/key"]}`

const text = { type: 'string' } as const
const { values, positionals } = readFlags(USAGE, {
  allowPositionals: true,
  options: {
    key: text,
    'max-per-call': { ...text, default: '0.10' },
    daily: { ...text, default: '1' },
    'daily-per-host': text,
    log: { ...text, default: join(homedir(), '.tollgate', 'purchases') },
  },
})

/** Standard output belongs to the protocol. */
const say = (line: string): void => void process.stderr.write(`${line}\n`)

function readLimits(): Limits {
  const perHost = values['daily-per-host']
  return {
    perCall: readDollars('--max-per-call', values['max-per-call']),
    perDay: readDollars('--daily', values.daily),
    ...(perHost === undefined ? {} : { perHostAndDay: readDollars('--daily-per-host', perHost) }),
  }
}

/** The address of the MCP endpoint: `/mcp` of a service that is named without a path. */
function endpointOf(sandbox: SandboxDescription | null): URL {
  const given = positionals[0] ?? sandbox?.base_url
  if (given === undefined)
    throw new PayError(
      'No sandbox was found. Name a service, e.g. https://gate.example, or set DATA_DIR to the data folder of a gateway that runs.',
    )
  if (!URL.canParse(given) || !/^https?:/.test(given))
    throw new PayError(`${given} is not an address such as https://gate.example.`)
  const url = new URL(given)
  if (url.pathname === '/') url.pathname = '/mcp'
  return url
}

function warnOfReaders(given: string): void {
  if (!given.startsWith('@')) return say('The key is visible in the list of processes. Put it in a file: --key @file.')
  if (process.platform !== 'win32' && statSync(given.slice(1)).mode & 0o077)
    say(`Others on this machine can read the key. Run: chmod 600 ${given.slice(1)}`)
}

async function connect(url: URL): Promise<Client> {
  const service = new Client({ name: 'tollgate-mcp', version: '1' })
  try {
    await service.connect(new StreamableHTTPClientTransport(url))
  } catch (error) {
    throw new PayError(`No MCP server answers at ${url.href}: ${(error as Error).message}`, { cause: error })
  }
  return service
}

try {
  const limits = readLimits()
  const sandbox = findSandbox(process.env['DATA_DIR']?.trim() || 'data')
  const url = endpointOf(sandbox)
  const key = values.key === undefined ? null : readKey(values.key)
  if (values.key !== undefined) warnOfReaders(values.key)
  const paying = key ?? (isSandbox(new URL('/', url), sandbox) ? sandbox.buyer.private_key : null)
  const service = await connect(url)
  const log = new PurchaseLog(values.log)
  const account = paying === null ? null : privateKeyToAccount(paying)
  const bridge = createBridge({ service, url, account, limits, log, say })
  await bridge.server.connect(new StdioServerTransport())
  // A payment under way is still completed, and its outcome written down.
  process.stdin.once('end', () => void bridge.idle().then(() => process.exit(0)))
  const wallet = account === null ? 'no wallet' : `wallet ${account.address}`
  say(`${url.href}: ${wallet}, ${dollars(log.spentToday())} of ${values.daily} USDC spent today`)
} catch (error) {
  if (!(error instanceof PayError)) throw error
  say(error.message)
  process.exitCode = 1
}
