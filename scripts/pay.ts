/** `npm run pay -- GET /path`: calls a route and pays for it, on the sandbox or on any x402 service. */
import { run } from './pay/run.ts'

// Whoever reads may leave early (`| head`); a payment under way is still seen through.
process.stdout.on('error', () => undefined)

process.exitCode = await run(process.argv.slice(2), {
  dataDir: process.env['DATA_DIR'] || 'data',
  out: process.stdout,
  colour: process.stdout.isTTY && process.stdout.hasColors(),
})
