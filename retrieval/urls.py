from django.urls import path

from retrieval import views

app_name = "retrieval"
urlpatterns = [
    path("search/", views.search, name="search"),
]
