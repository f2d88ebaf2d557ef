// The cookbook of data/README.md as a Python program.
import { assert } from '../src/lib/assert.ts'
import { LAKE_SCHEMA_VERSION } from '../src/schema/tables.ts'
import type { Recipe } from './cookbook.ts'

const HEAD = `"""The cookbook of data/README.md in Python: the same queries, run by DuckDB's package.

    pip install duckdb                                     # and pandas or polars, for .df() or .pl()
    python data/cookbook.py                                # every recipe on the sample, without a server
    python data/cookbook.py data/lake/catalog.duckdb       # on a lake, while its server runs
    python data/cookbook.py data/lake/catalog.duckdb Freshness
    python data/cookbook.py --horizon 5m data/lake/catalog.duckdb   # recipes that look ahead, over five minutes

In a notebook, in this folder:

    from cookbook import open_lake, run
    frame = run(open_lake("lake/catalog.duckdb"), "Freshness").df()     # or .pl(), .arrow(), .fetchall()

Made by \`node scripts/cookbook.ts\` from data/README.md: edit the queries there. Every recipe was run with Python 3.11 and
duckdb 1.5.6 when this was written. The tests hold that the queries are those of the card, and run them in Python where its
package duckdb is installed.
"""
import pathlib
import re
import sys

RECIPES = {
`

const TAIL = `}

ROOT = pathlib.Path(__file__).resolve().parent.parent


def open_sample(version=${LAKE_SCHEMA_VERSION}):
    """A connection with the tables of the sample as views."""
    import duckdb

    connection = duckdb.connect()
    views = (ROOT / f"data/samples/v{version}/views.sql").read_text()
    connection.execute(views.replace("['data/", f"['{ROOT}/data/"))
    return connection


def open_lake(catalog):
    """A connection to a lake, by the path of its catalog; nothing is locked."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("ATTACH '" + str(catalog).replace("'", "''") + "' AS lake (READ_ONLY)")
    connection.execute("USE lake")
    return connection


def run(connection, title, horizon=None):
    """The result of a recipe: .fetchall(), .df(), .pl() and .arrow() read it. horizon: 5m, 15m, 1h, 6h or 24h, else the recipe's."""
    if horizon not in (None, "5m", "15m", "1h", "6h", "24h"):
        raise ValueError("horizon is 5m, 15m, 1h, 6h or 24h")
    sql = RECIPES[title]
    return connection.execute(sql if horizon is None else re.sub(r"(?<=SET VARIABLE horizon = ')\\w+", horizon, sql))


def main(arguments):
    horizon = None
    if "--horizon" in arguments:
        at = arguments.index("--horizon")
        _, horizon, *rest = arguments[at:]
        arguments = arguments[:at] + rest
    connection = open_lake(arguments[0]) if arguments else open_sample()
    for title in arguments[1:] or RECIPES:
        result = run(connection, title, horizon)
        print(f"\\n{title}\\n  " + " | ".join(column[0] for column in result.description))
        for row in result.fetchall():
            print("  " + " | ".join(str(value) for value in row))


if __name__ == "__main__":
    main(sys.argv[1:])
`

/** The text of data/cookbook.py. */
export function pythonCookbook(recipes: readonly Recipe[]): string {
  const entries = recipes.map(({ title, sql }) => {
    assert(!sql.includes('"""') && !title.includes('"'), 'titles and queries can stand in Python as they are')
    return `    "${title}": r"""\n${sql}""",\n`
  })
  return HEAD + entries.join('') + TAIL
}
