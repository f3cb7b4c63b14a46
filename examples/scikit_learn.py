"""Node vectors in a scikit-learn pipeline: which region is a country in?

    python -m examples.scikit_learn

A small model is trained without the facts that state regions. Its vectors are the input of a
logistic regression, evaluated on countries that it was not fitted to.
"""

from tempfile import TemporaryDirectory

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import nodepiece

STATED = ["in region", "in subregion"]  # what would give the answer away


def main() -> float:
    """The accuracy over five folds; the most frequent region alone would have 0.25."""
    facts = nodepiece.load_countries().train.to_pandas()
    regions = facts[facts["relation"] == "in region"]
    graph = facts[~facts["relation"].isin(STATED)]
    regions = regions[regions["head"].isin(set(graph["head"]) | set(graph["tail"]))]
    with TemporaryDirectory() as folder:
        run = nodepiece.train(graph, f"{folder}/run", overrides=["training.epochs=8"])
        pipeline = make_pipeline(nodepiece.NodeVectorizer(run), LogisticRegression(max_iter=1000))
        accuracy = cross_val_score(pipeline, regions["head"].tolist(), regions["tail"], cv=5).mean()
    number = regions["tail"].nunique()
    print(f"accuracy {accuracy:.3f} on {len(regions)} countries in {number} regions")
    return float(accuracy)


if __name__ == "__main__":
    main()
