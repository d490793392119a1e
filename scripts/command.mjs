/**
 * Runs a command of the operator, such as `npm run check`: from the build, which starts in half the time, or from the sources
 * if they have changed since it was built. It never builds: a gateway that runs may still read the files of its build.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isBuilt, root } from './build-state.mjs'

const name = process.argv[2]
const file = isBuilt() ? join(root, 'dist', 'scripts', `${name}.js`) : join(root, 'scripts', `${name}.ts`)
if (file.endsWith('.ts')) (await import('tsx/esm/api')).register()
// The command reads its flags as if it had been started itself.
process.argv.splice(1, 2, file)
await import(pathToFileURL(file).href)
