/** `npm run pay -- GET /path`: calls a route and pays for it, in the sandbox or at any x402 service. */
import { run } from './pay/run.ts'

// The reader may leave early (`| head`); a payment under way is still completed.
process.stdout.on('error', () => undefined)

process.exitCode = await run(process.argv.slice(2), {
  dataDir: process.env['DATA_DIR']?.trim() || 'data',
  out: process.stdout,
  colour: process.stdout.isTTY && process.stdout.hasColors(),
})
