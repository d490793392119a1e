// Lets Node run the TypeScript of this checkout, in whatever folder it is started: node --import gateway/from-source.mjs
import { join } from 'node:path'
import { register } from 'tsx/esm/api'

register({ tsconfig: join(import.meta.dirname, '..', 'tsconfig.json') })
