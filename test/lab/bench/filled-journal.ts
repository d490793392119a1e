/** A SQLite journal that is already large, for benchmarks of what a payment costs when many came before it. */
import { openJournal } from '../../../gateway/payments/journal/open-journal.ts'
import { connect } from '../../../gateway/payments/journal/sqlite-connection.ts'

/** Creates a journal with a year of settled and delivered payments, written in two statements. */
export async function fillJournal(file: string, rows: number): Promise<void> {
  await (await openJournal({ file })).close()
  const connection = await connect(file, 'write')
  await connection.exec(`
    PRAGMA synchronous = OFF;
    INSERT INTO payments (key, state, attempt, fingerprint, operation, route, network, asset, payer, pay_to, amount, nonce,
      valid_after, valid_before, signature, version, price_version, call_id, owner, transaction_hash, created_at,
      updated_at, settled_at, answer_status)
    WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ${rows})
    SELECT hex(randomblob(60)), 'settled', 1, hex(randomblob(32)), 'op' || n % 20, 'GET /v1/x', 'eip155:8453', '0xa',
      '0x' || n % 5000, '0xb', '5000', hex(randomblob(32)), '0', '2000000000', hex(randomblob(65)), 2, 'v',
      hex(randomblob(16)), 'gone', hex(randomblob(32)), at, at, at, 200
    FROM (SELECT n, 1740000000000 + n * 31536 AS at FROM counted);
    INSERT INTO payment_deliveries SELECT id, attempt, settled_at FROM payments`)
  await connection.close()
}
