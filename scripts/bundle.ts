/** How code is bundled with its packages: the gateway, the commands, and the programs that tests run as processes. */
import type { BuildOptions } from 'esbuild'

/**
 * Packages with an addon, with files of their own, that load modules by computed names, or that one rare command needs. The
 * others are bundled.
 */
const NOT_BUNDLED = [
  '@apidevtools/json-schema-ref-parser',
  '@keyv/redis',
  'esbuild',
  'jsonc-parser',
  'pg',
  'pino',
  'prettier',
  'pug',
  'secp256k1',
  'sqlite3',
  'tsx',
]

/** Drivers of databases that Knex knows and we do not use. */
const NOT_INSTALLED = ['better-sqlite3', 'mariadb', 'mysql', 'mysql2', 'oracledb', 'pg-query-stream', 'tedious']

/** The options of esbuild that every bundle has. */
export const BUNDLE = {
  bundle: true,
  external: [...NOT_BUNDLED, ...NOT_INSTALLED],
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  // Bundled CommonJS modules require what Node provides.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
  },
} as const satisfies BuildOptions
