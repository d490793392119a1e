/** The folder of the project, from its sources and from its build. */
import { dirname, resolve } from 'node:path'

/** True if the gateway runs from `dist`, which `npm run build` writes. There is no loader for TypeScript then. */
export const IS_BUILT = import.meta.filename.endsWith('.js')

/** The folder above `gateway`: the project, or `dist`. */
export const GATEWAY_ROOT = resolve(import.meta.dirname, '../..')

/** The folder with `catalog`, `schemas`, `views` and `plugins`. */
export const PROJECT_ROOT = IS_BUILT ? dirname(GATEWAY_ROOT) : GATEWAY_ROOT
