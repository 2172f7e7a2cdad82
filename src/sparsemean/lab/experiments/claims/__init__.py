from pathlib import Path
def judge_all(tables: Path) -> Path: return tables/"claims.csv"
