/** The folder of the project, from its sources and from its build. */
import { basename, dirname, resolve } from 'node:path'

/** The folder that `npm run build` writes. */
const BUILD = 'dist'

const top = resolve(import.meta.dirname, '../..')

/** The folder with `catalog`, `schemas`, `views` and `plugins`. */
export const PROJECT_ROOT = basename(top) === BUILD ? dirname(top) : top
